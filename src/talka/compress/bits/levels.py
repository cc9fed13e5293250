"""Kernels of grids: round values stochastically to levels, and convert levels back to values.

A grid has `top + 1` points, evenly spaced from -1 to 1 times the norm of the bucket: level j stands
for `norm * (2 j - top) / top`. An even `top` has a level for zero (QSGD with top / 2 levels on either
side), an odd one has not (2^k points: top = 2^k - 1). A value between two points is rounded to one of
them at random, with probabilities that make its mean the value.
"""

from typing import Any, NamedTuple

import numpy as np

from talka.compiled import compiled
from talka.compress.bits.dense import rest_of, wanted
from talka.compress.bits.draws import draw_lanes, half_turn
from talka.compress.bits.elias import empty_measure, measure_block, sizes_of
from talka.compress.bits.lanes import (
    LANES,
    bits_of,
    counting,
    floats_of,
    floor,
    load,
    signed,
    spread,
    store,
    to_floats,
    to_ints,
    where,
)
from talka.compress.bits.norms import SMALLEST_NORM, norm_of
from talka.compress.bits.packing import BLOCK, pack, pack_rest, unpack_block

_SIGN, _NO_SIGN = np.uint32(1 << 31), np.uint32((1 << 31) - 1)
_HALF, _DRAWN = np.float32(0.5), np.float32(1 << 30)


class Grid(NamedTuple):
    """A grid and the scales of its buckets, in the form that kernels take."""

    top: int
    bucket: int
    """Values per bucket."""
    norms: Any
    """Norm of each bucket, float32."""
    inverses: Any
    """`top / 2` divided by the norm of each bucket, float32; 0 where the norm is 0."""
    units: Any
    """Norm of each bucket divided by `top`."""


@compiled
def set_scales(grid: Grid) -> Any:
    """Compute the scales from norms that came with a payload; return False if a norm is invalid."""
    for index in range(len(grid.norms)):
        if not 0 <= grid.norms[index] < np.inf:
            return False
        _set_scale(grid, index)
    return True


@compiled
def _set_scale(grid: Grid, index: Any) -> None:
    norm = np.float64(grid.norms[index])
    grid.inverses[index] = np.float32(0.5 * grid.top / norm) if norm >= SMALLEST_NORM else 0
    grid.units[index] = np.float32(norm / grid.top)


@compiled
def write_levels(
    values: Any,
    residual: Any,
    grid: Grid,
    by_largest: Any,
    key: Any,
    width: Any,
    counted: Any,
    words: Any,
) -> Any:
    """Write the norms of buckets and the packed levels of all values; update the residual.

    The residual becomes the rounding error. Returns, if `counted`, the number of nonzero levels
    and the bits of their signs and magnitudes in Elias codes; (-1, 0) if a bucket is not finite.
    """
    # One pass over blocks of 512 values, which stay in the first-level cache: measure the buckets
    # that begin in the block, round its 32 rows of 16 lanes to `levels`, pack those. A bucket is
    # measured just before it is rounded, so one that fits into the cache is read from memory once.
    # The incomplete last block is copied into a zero-padded one, so that the same kernels apply.
    levels = np.empty(BLOCK, np.uint32)
    zero, measured = np.uint32(grid.top >> 1), empty_measure()
    num_measured, full = 0, len(values) // BLOCK * BLOCK
    for start in range(0, full, BLOCK):
        num_measured = _measure_buckets(
            values, residual, grid, by_largest, num_measured, start + BLOCK
        )
        if num_measured < 0:
            return np.int64(-1), np.int64(0)
        _round_block(values, residual, start, grid, key, start, levels)
        pack(levels, width, words, start * width >> 5)
        if counted:
            measured = measure_block(levels, zero, measured)
    if full < len(values):
        if _measure_buckets(values, residual, grid, by_largest, num_measured, len(values)) < 0:
            return np.int64(-1), np.int64(0)
        rest = len(values) - full
        rest_values = rest_of(values, full, len(values), BLOCK)
        rest_residual = rest_of(residual, full, len(values), BLOCK)
        _round_block(rest_values, rest_residual, full, grid, key, 0, levels)
        pack_rest(levels, rest, width, words, full * width >> 5)
        if residual is not None:
            residual[full:] = rest_residual[:rest]
        levels[rest:] = zero
        measured = measure_block(levels, zero, measured)
    return sizes_of(measured, zero)


@compiled
def _measure_buckets(
    values: Any, residual: Any, grid: Grid, by_largest: Any, num_measured: Any, until: Any
) -> Any:
    """Measure all buckets that begin before `until`; return their number, or -1 if not finite."""
    while num_measured * grid.bucket < until:
        start = num_measured * grid.bucket
        stop = min(start + grid.bucket, len(values))
        grid.norms[num_measured] = norm_of(values, residual, start, stop, by_largest)
        if grid.norms[num_measured] < 0:
            return -1
        _set_scale(grid, num_measured)
        num_measured += 1
    return num_measured


@compiled
def _round_block(
    values: Any, residual: Any, start: Any, grid: Grid, key: Any, place: Any, levels: Any
) -> None:
    """Round the 512 values at `place`; the first of them is number `start` of the section.

    Rows are taken in pairs: one draw of 32 bits serves two values, the second with its halves
    swapped.
    """
    index = start // grid.bucket
    end = (index + 1) * grid.bucket
    for pair in range(0, BLOCK, 2 * LANES):
        draws = draw_lanes(counting() + ((start + pair) >> 1), key)
        for at in range(pair, pair + 2 * LANES, LANES):
            if start + at >= end:
                index, end = index + 1, end + grid.bucket
            inverse = scales_of_lanes(grid.inverses, index, end - start - at)
            row = wanted(values, residual, place + at)
            point = _rounded(row, inverse, grid.top, draws)
            store(levels, at, to_ints(point + np.float32(grid.top) * _HALF))
            if residual is not None:
                unit = scales_of_lanes(grid.units, index, end - start - at)
                store(residual, place + at, row - (point + point) * unit)
            draws = half_turn(draws)


@compiled
def scales_of_lanes(scales: Any, index: Any, left: Any) -> Any:
    """Return the scale of each lane of a row that may span two buckets.

    The first `left` lanes belong to bucket `index`, the others to the next.
    """
    last = len(scales) - 1
    here = scales[min(index, last)]
    if left >= LANES:
        return spread(here)
    return where(signed(counting()) < left, here, scales[min(index + 1, last)])


@compiled
def _rounded(row: Any, inverse: Any, top: Any, draws: Any) -> Any:
    """Round a row to grid points that are 1 apart; the smallest magnitude is 0 or 1/2.

    Signs are cleared before rounding and restored afterwards. The fraction above the lower point,
    scaled to 30 bits, is compared with 30 random bits.
    """
    half = np.float32(top) * _HALF
    least = np.float32(top & 1) * _HALF
    distance = floats_of(bits_of(row) & _NO_SIGN) * inverse
    above = where(distance > half, half, distance) - least
    level = floor(above)
    goes_up = to_ints((above - level) * _DRAWN) > signed(draws >> 2)
    point = where(goes_up, level + np.float32(1), level) + least
    return floats_of(bits_of(point) ^ (bits_of(row) & _SIGN))


@compiled
def read_levels(words: Any, width: Any, grid: Grid, add: Any, scale: Any, out: Any) -> None:
    """Decode what `write_levels` wrote: set `out`, or with `add` increase it, by `scale` times it."""
    levels = np.empty(BLOCK, np.uint32)
    for start in range(0, len(out), BLOCK):
        count = unpack_block(words, width, start, len(out), levels)
        if count == BLOCK:
            _scale_block(levels, start, grid, add, scale, start, out)
        else:
            rest = rest_of(out, start, len(out), BLOCK)
            _scale_block(levels, start, grid, add, scale, 0, rest)
            out[start:] = rest[:count]


@compiled
def _scale_block(
    levels: Any, start: Any, grid: Grid, add: Any, scale: Any, place: Any, out: Any
) -> None:
    index = start // grid.bucket
    end = (index + 1) * grid.bucket
    for at in range(0, BLOCK, LANES):
        if start + at >= end:
            index, end = index + 1, end + grid.bucket
        unit = scales_of_lanes(grid.units, index, end - start - at)
        steps = to_floats(signed(load(levels, at) * 2 - grid.top))
        row = steps * unit * scale
        store(out, place + at, load(out, place + at) + row if add else row)
