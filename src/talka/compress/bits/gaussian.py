"""Expected length of Elias codes of gaussian values, before any values were seen."""

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from talka.compress.bits.elias import MARKED

_NUM_QUANTILES = 512


@lru_cache(maxsize=256)
def level_bits(num_levels: int, *, by_largest: bool, bucket: int) -> tuple[float, float]:
    """Return the share of nonzero levels, and the bits per value of the codes of all levels.

    Values are rounded to `num_levels` on either side of zero, scaled by the norm of a bucket: the
    Euclidean norm of n gaussian values is about sqrt(n), and the median of their maximum is the
    magnitude that one value stays below with probability 2^(-1/n). A code is that of a distance,
    which is geometric, of a sign, and of a magnitude if it can exceed 1 (see `bits/elias.py`).
    """
    normal = NormalDist()
    norm = normal.inv_cdf((1 + 2 ** (-1 / bucket)) / 2) if by_largest else math.sqrt(bucket)
    shares = (np.arange(_NUM_QUANTILES) + 0.5) / _NUM_QUANTILES
    magnitudes = np.array([normal.inv_cdf((1 + share) / 2) for share in shares])
    scaled = np.minimum(num_levels * magnitudes / norm, num_levels)
    below = np.floor(scaled)
    up = scaled - below  # the probability of the level above
    nonzero = float(np.where(below > 0, 1, up).mean())
    bits = 0.0
    if num_levels > 1:
        digits_below = np.floor(np.log2(np.maximum(below, 1)))
        digits_above = np.floor(np.log2(below + 1))
        lengths = np.where(below > 0, (1 - up) * (2 * digits_below + 1), 0)
        bits = float((lengths + up * (2 * digits_above + 1)).mean())
    # A geometric distance has more than b binary digits with probability (1 - p)^(2^b - 1).
    digits = sum((1 - nonzero) ** (2**b - 1) for b in range(1, 32))
    return nonzero, bits + nonzero * (2 * digits + 2)


def coded_bytes(num_values: int, num_levels: int, *, by_largest: bool, bucket: int) -> float:
    """Return the expected bytes of the codes of a section, with their head and marks."""
    nonzero, bits = level_bits(num_levels, by_largest=by_largest, bucket=bucket)
    num_marks = nonzero * num_values / MARKED
    return 4 + 8 * num_marks + 4 * (bits * num_values / 32 + 0.5)
