"""Kernels over ranges of rows, a thread for each range.

cuts = balanced_cuts(csr.offsets, num_threads)
over_ranges(kernel, cuts, csr.offsets, csr.columns, ...)    # kernel(start, stop, ...)
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from talka.threads import shared_pool


def balanced_cuts(offsets: NDArray[Any], num_ranges: int) -> NDArray[np.int64]:
    """Where to cut rows so that every range has about as many entries and rows as any other.

    A row counts as one entry more than it has: rows without entries are not free.

    >>> balanced_cuts(np.array([0, 6, 7, 8, 9, 9]), 2)
    array([0, 1, 5])
    """
    num_rows = len(offsets) - 1
    total = int(offsets[-1]) + num_rows
    wanted = [total * part // num_ranges for part in range(1, num_ranges)]
    cuts = [0]
    for weight in wanted:
        low, high = cuts[-1], num_rows  # the first row at which `weight` is reached, by halving
        while low < high:
            middle = (low + high) // 2
            if int(offsets[middle]) + middle < weight:
                low = middle + 1
            else:
                high = middle
        cuts.append(low)
    return np.array([*cuts, num_rows], np.int64)


def over_ranges(kernel: Callable[..., Any], cuts: NDArray[np.int64], *arguments: Any) -> list[Any]:
    """`kernel(start, stop, *arguments)` for each range at the same time; results in order."""
    ranges = [(int(start), int(stop)) for start, stop in itertools.pairwise(cuts)]
    if len(ranges) == 1:
        return [kernel(*ranges[0], *arguments)]
    pool = shared_pool(len(ranges))
    calls = [pool.submit(kernel, *each, *arguments) for each in ranges[1:]]
    first = kernel(*ranges[0], *arguments)
    return [first, *(call.result() for call in calls)]
