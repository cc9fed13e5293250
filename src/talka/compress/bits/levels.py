"""Kernels of grids: norms of buckets, values to levels by stochastic rounding, and back.

A grid has `top + 1` points, evenly from -1 to 1 times the norm of the bucket: level j stands for
`norm * (2 j - top) / top`. An even `top` has a level for zero (QSGD with top / 2 levels on either
side), an odd one has not (2^k points: top = 2^k - 1). A value between two points becomes one of
them at random, the nearer one more often, so that its mean is the value.
"""

from typing import Any, NamedTuple

import numpy as np

from talka.compress.bits.dense import are_finite, larger, rest_of, wanted
from talka.compress.bits.draws import draw_lanes, half_turn
from talka.compress.bits.elias import measure_block
from talka.compress.bits.lanes import (
    LANES,
    bits_of,
    compiled,
    counting,
    floats_of,
    floor,
    load,
    signed,
    spread,
    store,
    sum_of,
    to_doubles,
    to_floats,
    to_ints,
    where,
)
from talka.compress.bits.packing import BLOCK, pack, pack_rest, unpack_block

SUMMED = 4096  # values that are summed in lanes before the lanes are added up
LARGEST_NORM = np.float32(2.0**128 * (1 - 2.0**-20))  # so that no level becomes infinite
SMALLEST_NORM = np.float32(2.0**-100)  # what lies below counts as zero: its parts would be none
_SIGN, _NO_SIGN = np.uint32(1 << 31), np.uint32((1 << 31) - 1)
_HALF, _DRAWN = np.float32(0.5), np.float32(1 << 30)


@compiled
def measure(values: Any, residual: Any, bucket: Any, by_largest: Any, norms: Any) -> Any:
    """The norm of each bucket; whether all values are finite."""
    for index in range(len(norms)):
        start = index * bucket
        stop = min(start + bucket, len(values))
        if by_largest:
            norm = _largest(values, residual, start, stop)
        else:
            norm = _euclidean(values, residual, start, stop)
        if not norm < np.inf:
            return False
        norms[index] = min(np.float32(norm), LARGEST_NORM) if norm >= SMALLEST_NORM else 0
    return True


@compiled
def _largest(values: Any, residual: Any, start: Any, stop: Any) -> Any:
    full = start + (stop - start) // LANES * LANES
    worst = spread(np.int32(0))
    for at in range(start, full, LANES):
        worst = larger(worst, wanted(values, residual, at))
    if full < stop:
        rest_values = rest_of(values, full, stop, LANES)
        rest_residual = rest_of(residual, full, stop, LANES)
        worst = larger(worst, wanted(rest_values, rest_residual, 0))
    if not are_finite(worst):
        return np.inf
    magnitudes = np.empty(LANES, np.float32)
    store(magnitudes, 0, floats_of(worst))
    return np.float64(magnitudes.max())


@compiled
def _euclidean(values: Any, residual: Any, start: Any, stop: Any) -> Any:
    total = 0.0
    full = start + (stop - start) // LANES * LANES
    for first in range(start, full, SUMMED):
        squares = spread(0.0)
        for at in range(first, min(first + SUMMED, full), LANES):
            row = to_doubles(wanted(values, residual, at))
            squares = squares + row * row
        total += sum_of(squares)
    for at in range(full, stop):
        value = values[at]
        if residual is not None:
            value = np.float32(value + residual[at])
        total += np.float64(value) * np.float64(value)
    return np.sqrt(total)


class Grid(NamedTuple):
    """What kernels have to know of a grid over buckets."""

    top: int
    bucket: int
    inverses: Any
    """`top / 2` over the norm of each bucket, float32; 0 where the norm is."""
    units: Any
    """The norm of each bucket over `top`."""


@compiled
def scales(norms: Any, top: Any, inverses: Any, units: Any) -> Any:
    """Fill what a grid needs; whether the norms are norms."""
    for index in range(len(norms)):
        norm = np.float64(norms[index])
        if not 0 <= norm < np.inf:
            return False
        inverses[index] = np.float32(0.5 * top / norm) if norm >= SMALLEST_NORM else 0
        units[index] = np.float32(norm / top)
    return True


@compiled
def write_levels(values: Any, residual: Any, grid: Grid, key: Any, width: Any, words: Any) -> Any:
    """Levels of all values, packed; the residual becomes what they do not say.

    Gives the number of levels that are not zero, and the bits of their signs and magnitudes in
    Elias codes.
    """
    levels = np.empty(BLOCK, np.uint32)
    zero, total = np.uint32(grid.top >> 1), (np.int64(0), np.int64(0))
    full = len(values) // BLOCK * BLOCK
    for start in range(0, full, BLOCK):
        _round_block(values, residual, start, grid, key, start, levels)
        pack(levels, width, words, start * width >> 5)
        if not grid.top & 1:
            total = _sum(total, measure_block(levels, zero))
    if full < len(values):
        rest = len(values) - full
        rest_values = rest_of(values, full, len(values), BLOCK)
        rest_residual = rest_of(residual, full, len(values), BLOCK)
        _round_block(rest_values, rest_residual, full, grid, key, 0, levels)
        pack_rest(levels, rest, width, words, full * width >> 5)
        if residual is not None:
            residual[full:] = rest_residual[:rest]
        levels[rest:] = zero
        total = _sum(total, measure_block(levels, zero))
    return total


@compiled
def _sum(a: Any, b: Any) -> Any:
    return a[0] + b[0], a[1] + b[1]


@compiled
def _round_block(
    values: Any, residual: Any, start: Any, grid: Grid, key: Any, place: Any, levels: Any
) -> None:
    """Levels of the 512 values at `place`; the first of them is number `start` of the section."""
    index = start // grid.bucket
    end = (index + 1) * grid.bucket
    for pair in range(0, BLOCK, 2 * LANES):
        draws = draw_lanes(counting() + ((start + pair) >> 1), key)
        for at in range(pair, pair + 2 * LANES, LANES):
            if start + at >= end:
                index, end = index + 1, end + grid.bucket
            inverse = _of_buckets(grid.inverses, index, end - start - at)
            row = wanted(values, residual, place + at)
            point = _rounded(row, inverse, grid.top, draws)
            store(levels, at, to_ints(point + np.float32(grid.top) * _HALF))
            if residual is not None:
                unit = _of_buckets(grid.units, index, end - start - at)
                store(residual, place + at, row - (point + point) * unit)
            draws = half_turn(draws)


@compiled
def _of_buckets(scales: Any, index: Any, left: Any) -> Any:
    """Of each lane of a row of which only the first `left` values lie in bucket `index`."""
    last = len(scales) - 1
    here, following = scales[min(index, last)], scales[min(index + 1, last)]
    return where(signed(counting()) < left, here, following)


@compiled
def _rounded(row: Any, inverse: Any, top: Any, draws: Any) -> Any:
    """Points of the grid, in units in which they are 1 apart, and 0 or 1/2 the least."""
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
    """What `write_levels` wrote: `out` becomes, or with `add` grows by, that times `scale`."""
    levels = np.empty(BLOCK, np.uint32)
    for start in range(0, len(out), BLOCK):
        count = unpack_block(words, width, start, len(out), levels)
        if count == BLOCK:
            _place_block(levels, start, grid, add, scale, start, out)
        else:
            rest = rest_of(out, start, len(out), BLOCK)
            _place_block(levels, start, grid, add, scale, 0, rest)
            out[start:] = rest[:count]


@compiled
def _place_block(
    levels: Any, start: Any, grid: Grid, add: Any, scale: Any, place: Any, out: Any
) -> None:
    index = start // grid.bucket
    end = (index + 1) * grid.bucket
    for at in range(0, BLOCK, LANES):
        if start + at >= end:
            index, end = index + 1, end + grid.bucket
        unit = _of_buckets(grid.units, index, end - start - at)
        steps = to_floats(signed(load(levels, at) * 2 - grid.top))
        row = steps * unit * scale
        store(out, place + at, load(out, place + at) + row if add else row)
