"""Weights 1/distance as integers, so that sums are exact and the same in any order.

With `unit` = lcm(1..window) every unit/distance is an integer. The sums fit into 64 bits for windows
up to about 20 on any text and about 40 on small ones. For larger windows `unit` is the largest power
of two that fits, and unit/distance is rounded: 1/distance is then off by at most 1e-7, below the
precision of float32. Sums of float64 would be as accurate but depend on their order, and so on the
number of threads and the memory budget.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_MAX_SUM = 2**64 - 1


class Weights(NamedTuple):
    """Integer weights by distance."""

    by_distance: NDArray[np.uint64]
    """Weight unit/d at index d; index 0 is not used."""

    unit: float
    """The sum that stands for a count of 1."""


def integer_weights(window: int, max_count: int) -> Weights:
    """Return weights whose sum over both sides of `max_count` windows fits into 64 bits.

    >>> integer_weights(3, 1000)
    Weights(by_distance=array([0, 6, 3, 2], dtype=uint64), unit=6.0)
    """
    unit = math.lcm(*range(1, window + 1))
    if _largest_sum(unit, window, max_count) > _MAX_SUM:
        unit = 2**62
        while _largest_sum(unit, window, max_count) > _MAX_SUM:
            unit //= 2
    weights = [0] + [_rounded(unit, distance) for distance in range(1, window + 1)]
    return Weights(np.array(weights, np.uint64), float(unit))


def _rounded(unit: int, distance: int) -> int:
    return (2 * unit + distance) // (2 * distance)


def _largest_sum(unit: int, window: int, max_count: int) -> int:
    return 2 * max_count * sum(_rounded(unit, distance) for distance in range(1, window + 1))
