"""Select exactly the k largest magnitudes with a radix selection, highest digit first.

Among equal magnitudes, those with the lowest indices are selected; zeros never are.
"""

from typing import Any

import numpy as np

from talka.compiled import compiled
from talka.compress.bits.select import Floats, Picked

_UNSIGNED = np.int32(0x7FFFFFFF)
_DIGIT_BITS = 11


def largest(wanted: Floats, count: int) -> Picked:
    """Return indices and values of the `count` largest, or of all nonzero values if fewer."""
    least, num_equal = kth_largest(wanted.view(np.int32), count)
    indices, picked = np.empty(count + 1, np.uint32), np.empty(count + 1, np.float32)
    kept = _collect(wanted, least, num_equal, indices, picked)
    return Picked(indices[:kept], picked[:kept], len(wanted))


def narrow(picked: Picked, count: int, residual: Floats | None) -> Picked:
    """Keep the `count` largest picked values, in place, and return the others to the residual."""
    num_dropped = len(picked.indices) - count
    if num_dropped <= 0:
        return picked
    least, num_equal = kth_largest(picked.values.view(np.int32), count)
    dropped = Picked(
        np.empty(num_dropped + 1, np.uint32), np.empty(num_dropped + 1, np.float32), picked.stop
    )
    _partition(picked, least, num_equal, dropped)
    if residual is not None:
        _put(dropped.indices[:-1], dropped.values[:-1], residual)
    return Picked(picked.indices[:count], picked.values[:count], picked.stop)


def put_back(picked: Picked, residual: Floats) -> None:
    """Return all picked values to the residual."""
    _put(picked.indices, picked.values, residual)


@compiled
def kth_largest(bits: Any, count: int) -> tuple[Any, int]:
    """Return the bits of the `count`-th largest magnitude, and how many equal ones to select.

    If that magnitude is zero, none that equal it are selected.
    """
    # A float without its sign bit orders like an integer, so the selection works on integers. Each
    # pass counts one digit of 11 bits, highest first, among the values that share the digits found
    # so far (`prefix`), then steps down from the highest digit until `left` values are covered.
    # Digits are taken of the difference to the smallest magnitude: a narrow range of magnitudes
    # then still falls into many digits, and needs fewer passes.
    low, high = _UNSIGNED, np.int32(0)
    for at in range(len(bits)):
        magnitude = np.int32(bits[at] & _UNSIGNED)
        low, high = min(low, magnitude), max(high, magnitude)
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
    """Collect indices and values of the largest; return their number.

    Branch-free: each value is written, and overwritten by the next one unless it is kept.
    """
    bits = wanted.view(np.int32)
    kept: Any = 0
    for at in range(len(bits)):
        magnitude = np.int32(bits[at] & _UNSIGNED)
        equal = np.int64((magnitude == least) & (num_equal > 0))
        indices[kept] = np.uint32(at)
        picked[kept] = wanted[at]
        num_equal -= equal
        kept += equal + np.int64(magnitude > least)
    return kept


@compiled
def _partition(picked: Any, least: Any, num_equal: Any, dropped: Any) -> None:
    """Move kept entries to the front and the others into `dropped`, which has a margin of one.

    Branch-free: each entry is written to both sides, and one of the two ends advances.
    """
    indices, values, _ = picked
    dropped_indices, dropped_values, _ = dropped
    bits = values.view(np.int32)
    num_kept: Any = 0
    num_dropped: Any = 0
    for at in range(len(bits)):
        magnitude = np.int32(bits[at] & _UNSIGNED)
        index, value = indices[at], values[at]
        equal = np.int64((magnitude == least) & (num_equal > 0))
        is_kept = equal + np.int64(magnitude > least)
        indices[num_kept] = index
        values[num_kept] = value
        dropped_indices[num_dropped] = index
        dropped_values[num_dropped] = value
        num_equal -= equal
        num_kept += is_kept
        num_dropped += 1 - is_kept


@compiled
def _put(indices: Any, values: Any, into: Any) -> None:
    for at in range(len(indices)):
        into[indices[at]] = values[at]
