"""1/distance as whole numbers, so that sums are exact and the same in any order.

With `one` = lcm(1..window) every one/distance is whole. That fits 64 bits up to windows of about 20
on any text and about 40 on small ones. Where it does not, `one` is the largest power of two that
does, and one/distance is rounded: 1/distance is then off by at most 1e-7, less than float32 can
tell. Sums of float64 would be as good but depend on their order, so on threads and memory.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_MAX_SUM = 2**64 - 1


class Weights(NamedTuple):
    by_distance: NDArray[np.uint64]
    """Entry d is one/d; entry 0 is not used."""

    one: float


def whole_weights(window: int, max_count: int) -> Weights:
    """Weights whose sum over `max_count` windows, both sides, fits 64 bits.

    >>> whole_weights(3, 1000)
    Weights(by_distance=array([0, 6, 3, 2], dtype=uint64), one=6.0)
    """
    one = math.lcm(*range(1, window + 1))
    if _largest_sum(one, window, max_count) > _MAX_SUM:
        one = 2**62
        while _largest_sum(one, window, max_count) > _MAX_SUM:
            one //= 2
    weights = [0] + [_rounded(one, distance) for distance in range(1, window + 1)]
    return Weights(np.array(weights, np.uint64), float(one))


def _rounded(one: int, distance: int) -> int:
    return (2 * one + distance) // (2 * distance)


def _largest_sum(one: int, window: int, max_count: int) -> int:
    return 2 * max_count * sum(_rounded(one, distance) for distance in range(1, window + 1))
