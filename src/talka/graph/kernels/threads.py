"""Threads for kernels: each thread runs the kernel on a range of rows.

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
    """Return where to cut rows so that all ranges have about the same number of entries.

    A row counts as its entries plus one, since a row without entries is not free.

    >>> balanced_cuts(np.array([0, 6, 7, 8, 9, 9]), 2)
    array([0, 1, 5])
    """
    num_rows = len(offsets) - 1
    total = int(offsets[-1]) + num_rows
    cuts = [0]
    for weight in (total * index // num_ranges for index in range(1, num_ranges)):
        low, high = cuts[-1], num_rows  # binary search for the first row that reaches `weight`
        while low < high:
            middle = (low + high) // 2
            if int(offsets[middle]) + middle < weight:
                low = middle + 1
            else:
                high = middle
        cuts.append(low)
    return np.array([*cuts, num_rows], np.int64)


def over_ranges(kernel: Callable[..., Any], cuts: NDArray[np.int64], *arguments: Any) -> list[Any]:
    """Call `kernel(start, stop, *arguments)` for all ranges in parallel; results are in order."""
    ranges = [(int(start), int(stop)) for start, stop in itertools.pairwise(cuts)]
    if len(ranges) == 1:
        return [kernel(*ranges[0], *arguments)]
    pool = shared_pool(len(ranges))
    calls = [pool.submit(kernel, *bounds, *arguments) for bounds in ranges[1:]]
    first = kernel(*ranges[0], *arguments)
    return [first, *(call.result() for call in calls)]
