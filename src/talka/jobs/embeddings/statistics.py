"""Shares and rank correlations with 95% confidence intervals."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Z_95 = 1.959963984540054  # 97.5% quantile of the normal distribution


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


def wilson(num_hits: int, num_tries: int) -> Interval:
    """Return the 95% interval of a share (Wilson, 1927), valid for few tries and extreme shares.

    >>> [round(bound, 3) for bound in wilson(8, 10)]
    [0.49, 0.943]
    """
    if num_tries == 0:
        return Interval(0.0, 1.0)
    share, z2 = num_hits / num_tries, Z_95**2
    middle = (share + z2 / (2 * num_tries)) / (1 + z2 / num_tries)
    spread = share * (1 - share) / num_tries + z2 / (4 * num_tries**2)
    half = Z_95 / (1 + z2 / num_tries) * math.sqrt(spread)
    return Interval(max(0.0, middle - half), min(1.0, middle + half))


def ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Return ranks from 1; equal values get the mean of their ranks.

    >>> ranks([10, 30, 20, 20]).tolist()
    [1.0, 4.0, 2.5, 2.5]
    """
    _, group, sizes = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    return np.asarray(last - (sizes - 1) / 2, np.float64)[group]


def spearman(left: ArrayLike, right: ArrayLike) -> float | None:
    """Return the rank correlation, with ties; None if one side is constant.

    >>> spearman([1, 2, 3], [1, 4, 9]), spearman([1, 1], [1, 2])
    (1.0, None)
    """
    first, second = (ranks(side) - (np.size(side) + 1) / 2 for side in (left, right))
    scale = math.sqrt(float(first @ first) * float(second @ second))
    if scale == 0:
        return None
    return max(-1.0, min(1.0, float(first @ second) / scale))


def spearman_interval(rho: float, num_pairs: int) -> Interval | None:
    """Return the 95% interval of a rank correlation; None for fewer than four pairs.

    Uses Fisher's transform with the variance (1 + rho^2 / 2) / (n - 3) of Bonett and Wright (2000);
    Fisher's 1 / (n - 3) makes the interval too narrow for large rho.
    """
    if num_pairs < 4:
        return None
    if abs(rho) == 1:
        return Interval(rho, rho)
    half = Z_95 * math.sqrt((1 + rho**2 / 2) / (num_pairs - 3))
    return Interval(math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half))
