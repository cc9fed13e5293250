"""The exactly k largest magnitudes, by counting digits from the highest down.

Of equal magnitudes those with the lowest indices; zeros never.
"""

from typing import Any

import numpy as np

from talka.compiled import compiled
from talka.compress.bits.select import Floats, Picked

_UNSIGNED = np.int32(0x7FFFFFFF)
_DIGIT_BITS = 11


def largest(wanted: Floats, count: int) -> Picked:
    """Where the `count` largest of all values stand, or all that are not zero if those are fewer."""
    least, num_equal = kth_largest(wanted.view(np.int32), count)
    indices, picked = np.empty(count + 1, np.uint32), np.empty(count + 1, np.float32)
    kept = _collect(wanted, least, num_equal, indices, picked)
    return Picked(indices[:kept], picked[:kept], len(wanted))


def narrow(found: Picked, count: int, residual: Floats | None) -> Picked:
    """Of values that were picked the largest, in their place; the others go back to the residual."""
    num_dropped = len(found.indices) - count
    if num_dropped <= 0:
        return found
    least, num_equal = kth_largest(found.values.view(np.int32), count)
    dropped = Picked(
        np.empty(num_dropped + 1, np.uint32), np.empty(num_dropped + 1, np.float32), found.stop
    )
    _part(found, least, num_equal, dropped)
    if residual is not None:
        _put(dropped.indices[:-1], dropped.values[:-1], residual)
    return Picked(found.indices[:count], found.values[:count], found.stop)


def put_back(found: Picked, residual: Floats) -> None:
    _put(found.indices, found.values, residual)


@compiled
def kth_largest(bits: Any, count: int) -> tuple[Any, int]:
    """Bits of the `count`-th largest magnitude, and how many that equal it are among the largest.

    Zero is no magnitude: then there are none that equal it. Digits are those of what lies above the
    smallest magnitude, so that also a narrow range falls into many of them.
    """
    low, high = _UNSIGNED, np.int32(0)
    for at in range(len(bits)):
        one = np.int32(bits[at] & _UNSIGNED)
        low, high = min(low, one), max(high, one)
    num_bits = 0
    while num_bits < 31 and (high - low) >> num_bits:
        num_bits += 1
    prefix, left = np.int32(0), count
    counts = np.zeros(1 << _DIGIT_BITS, np.int64)
    while num_bits > 0:
        shift = max(num_bits - _DIGIT_BITS, 0)
        digit = (1 << (num_bits - shift)) - 1
        counts[:] = 0
        for at in range(len(bits)):
            above = np.int32(np.int32(bits[at] & _UNSIGNED) - low)
            if above >> num_bits == prefix >> num_bits:
                counts[above >> shift & digit] += 1
        while counts[digit] < left:
            left -= counts[digit]
            digit -= 1
        prefix = np.int32(prefix | np.int32(np.int32(digit) << np.int32(shift)))
        num_bits = shift
    least = np.int32(low + prefix)
    return least, left if least > np.int32(0) else 0


@compiled
def _collect(wanted: Any, least: Any, num_equal: Any, indices: Any, picked: Any) -> Any:
    """Without a branch: each value is written, and the next one over it unless it is kept."""
    bits = wanted.view(np.int32)
    kept: Any = 0
    for at in range(len(bits)):
        one = np.int32(bits[at] & _UNSIGNED)
        equal = np.int64((one == least) & (num_equal > 0))
        indices[kept] = np.uint32(at)
        picked[kept] = wanted[at]
        num_equal -= equal
        kept += equal + np.int64(one > least)
    return kept


@compiled
def _part(found: Any, least: Any, num_equal: Any, dropped: Any) -> None:
    """Kept ones to the front, the others into `dropped`, which has a margin of one."""
    indices, picked, _ = found
    dropped_indices, dropped_values, _ = dropped
    bits = picked.view(np.int32)
    kept: Any = 0
    away: Any = 0
    for at in range(len(bits)):
        one = np.int32(bits[at] & _UNSIGNED)
        index, value = indices[at], picked[at]
        equal = np.int64((one == least) & (num_equal > 0))
        stays = equal + np.int64(one > least)
        indices[kept] = index
        picked[kept] = value
        dropped_indices[away] = index
        dropped_values[away] = value
        num_equal -= equal
        kept += stays
        away += 1 - stays


@compiled
def _put(indices: Any, values: Any, into: Any) -> None:
    for at in range(len(indices)):
        into[indices[at]] = values[at]
