"""Select the values above a threshold and update the residual, in one pass over a tensor.

Magnitudes are compared as integers, the bits of a float without its sign: the order is the same, and
infinity and NaN are largest. 64 comparisons give one mask, and only its set bits are visited. A block
stays in the first-level cache between these steps; on one core, with 1% selected, `_take` reaches this
share of the speed of a copy: 0.95 with blocks of 512 values, 0.85 with 1,024, 0.82 with 2,048.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.compiled import compiled
from talka.compress.bits.lanes import LANES, load, spread, store, trailing_zeros, where, word_of

Floats = NDArray[np.float32]
Indices = NDArray[np.uint32]

BLOCK = 512
_MASKS = BLOCK // 64
_UNSIGNED = np.int32(0x7FFFFFFF)
_INFINITE = 0x7F800000
_CANNOT_OVERFLOW = 2.0**103
"""Half a unit in the last place of the largest float32: adding less to a finite value is finite."""


class Picked(NamedTuple):
    """Selected values and their ascending indices."""

    indices: Indices
    values: Floats
    stop: int
    """Index at which the selection stopped because of its limit, or the number of values."""


def magnitude_bits(magnitude: float) -> np.int32:
    """Return a threshold as the integer that the kernels compare with."""
    return np.float32(magnitude).view(np.int32)


def largest_bits(values: Floats) -> np.int32:
    """Return the bits of the largest magnitude."""
    return np.int32(_largest_bits(values.view(np.int32)))


def check_finite(values: Floats, residual: Floats | None = None) -> None:
    """Raise FloatingPointError if a value, or its sum with a finite residual, is not finite.

    Reads the values once; sums are checked only if the values are large enough to overflow.
    """
    largest = largest_bits(values)
    if largest >= _INFINITE:
        raise FloatingPointError
    if residual is not None and largest >= magnitude_bits(_CANNOT_OVERFLOW):
        with np.errstate(over="ignore"):
            check_finite(values + residual)


def select(
    values: Floats,
    residual: Floats | None,
    least: np.int32,
    *,
    step: float = 0.0,
    guess: int,
    limit: int | None = None,
) -> Picked:
    """Select all values (plus the residual, if any) whose magnitude has at least the bits `least`.

    The residual becomes the sums minus what was selected: the whole value, or with `step` that much
    of it towards zero. Memory is allocated for `guess` values first, and doubled as needed. The
    selection stops after a block that exceeds `limit`.
    """
    limit = len(values) if limit is None else limit
    size = min(guess, limit) + BLOCK
    indices, picked = np.empty(size, np.uint32), np.empty(size, np.float32)
    count = start = 0
    while True:
        if residual is None:
            count, start = _pick(values, least, start, count, indices, picked)
        else:
            count, start = _take(
                values, residual, least, np.float32(step), start, count, indices, picked
            )
        if start == len(values) or count > limit:
            return Picked(indices[:count], picked[:count], start)
        indices, picked = (
            np.concatenate([array, np.empty_like(array)]) for array in (indices, picked)
        )


@compiled
def _largest_bits(bits: Any) -> Any:
    """Return the largest magnitude.

    Reads four quarters at once: the processor prefetches only within a page of 4 kB.
    """
    quarter = len(bits) // (4 * LANES) * LANES
    a = b = c = d = spread(np.int32(0))
    for at in range(0, quarter, LANES):
        a = _larger(a, load(bits, at))
        b = _larger(b, load(bits, quarter + at))
        c = _larger(c, load(bits, 2 * quarter + at))
        d = _larger(d, load(bits, 3 * quarter + at))
    rows = np.empty(LANES, np.int32)
    store(rows, 0, _larger(_larger(a, b), _larger(c, d)))
    largest = rows.max()
    for at in range(4 * quarter, len(bits)):
        largest = max(largest, np.int32(bits[at] & _UNSIGNED))
    return largest


@compiled
def _larger(known: Any, bits: Any) -> Any:
    magnitudes = bits & _UNSIGNED
    return where(magnitudes > known, magnitudes, known)


@compiled
def _pick(
    wanted: Any, least: Any, start: int, count: int, indices: Any, picked: Any
) -> tuple[int, int]:
    """Continue at `start` with `count` values selected; return the new count and start.

    Stops at the end, or when the buffers might not hold another block.
    """
    masks = np.empty(_MASKS, np.uint64)
    while start < len(wanted) and count + BLOCK <= len(indices):
        block = wanted[start : start + BLOCK]
        _mark(block.view(np.int32), least, masks)
        for place in range(_MASKS):
            mask = masks[place]
            while mask != np.uint64(0):
                at = 64 * place + trailing_zeros(mask)
                mask = np.uint64(mask & np.uint64(mask - np.uint64(1)))
                indices[count] = np.uint32(start + at)
                picked[count] = block[at]
                count += 1
        start += len(block)
    return count, start


@compiled
def _take(
    values: Any,
    residual: Any,
    least: Any,
    step: Any,
    start: int,
    count: int,
    indices: Any,
    picked: Any,
) -> tuple[int, int]:
    """Select like `_pick`, from the sums of values and residual, and update the residual."""
    # Three short loops per block of 512 values instead of one long one: add (which LLVM turns into
    # vector code), compare in lanes to 8 masks of 64 bits, visit the set bits. The block is in the
    # first-level cache after the first loop, and the cost of the last one depends only on how many
    # values are selected.
    masks = np.empty(_MASKS, np.uint64)
    whole = step == np.float32(0)
    while start < len(values) and count + BLOCK <= len(indices):
        block, rest = values[start : start + BLOCK], residual[start : start + BLOCK]
        for lane in range(len(block)):
            rest[lane] += block[lane]
        _mark(rest.view(np.int32), least, masks)
        for place in range(_MASKS):
            mask = masks[place]
            while mask != np.uint64(0):
                at = 64 * place + trailing_zeros(mask)
                mask = np.uint64(mask & np.uint64(mask - np.uint64(1)))
                value = rest[at]
                indices[count] = np.uint32(start + at)
                picked[count] = value
                count += 1
                if whole:
                    rest[at] = np.float32(0)
                else:
                    rest[at] = np.float32(value - (step if value > np.float32(0) else -step))
        start += len(block)
    return count, start


@compiled
def _mark(bits: Any, least: Any, masks: Any) -> None:
    """Set the bit of each value at or above the threshold, in a block of up to `BLOCK` values."""
    if len(bits) == BLOCK:
        for place in range(_MASKS):
            mask = np.uint64(0)
            for row in range(64 // LANES):
                large = word_of((load(bits, 64 * place + LANES * row) & _UNSIGNED) >= least)
                mask = np.uint64(mask | np.uint64(np.uint64(large) << np.uint64(LANES * row)))
            masks[place] = mask
    else:
        masks[:] = np.uint64(0)
        for lane in range(len(bits)):
            large = np.uint64(np.int32(bits[lane] & _UNSIGNED) >= least)
            masks[lane // 64] |= np.uint64(large << np.uint64(lane % 64))


@compiled
def take_at(values: Any, residual: Any, indices: Any, picked: Any) -> None:
    """Add values to the residual, then move the sums at ascending indices to `picked`."""
    at = 0
    for start in range(0, len(values), BLOCK):
        block, rest = values[start : start + BLOCK], residual[start : start + BLOCK]
        for lane in range(len(block)):
            rest[lane] += block[lane]
        while at < len(indices) and indices[at] < start + len(block):
            picked[at] = residual[indices[at]]
            residual[indices[at]] = np.float32(0)
            at += 1
