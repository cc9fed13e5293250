"""Kernels of one bit a value: sums of both sides, signs in and out, rows of zeros.

Values are cut into blocks, each with two means of its own; signs fill words from the lowest bit on,
and a block begins with a word. For the mask they are cut into rows of a matrix; the first and the
last may be cut off, as a slice need not end where a row does.
"""

from typing import Any

import numpy as np

from talka.compress.bits.dense import rest_of, wanted
from talka.compress.bits.lanes import (
    LANES,
    compiled,
    count_ones,
    load,
    mask_of,
    spread,
    store,
    sum_of,
    to_doubles,
    where,
    word_of,
)

SUMMED = 4096  # values that are summed in lanes before the lanes are added up
_WORD = 32
_ZERO, _HALF_WORD = np.float32(0), np.uint32(16)


@compiled
def find_zero_rows(values: Any, residual: Any, row_length: Any, phase: Any, mask: Any) -> Any:
    """Set the bits of rows of which all is zero; how many values those hold."""
    mask[:] = 0
    num_values = 0
    for row in range(-(-(phase + len(values)) // row_length)):
        start = max(row * row_length - phase, 0)
        stop = min((row + 1) * row_length - phase, len(values))
        if _all_zero(values, residual, start, stop):
            mask[row >> 5] |= np.uint32(1) << np.uint32(row & 31)
            num_values += stop - start
    return num_values


@compiled
def _all_zero(values: Any, residual: Any, start: Any, stop: Any) -> Any:
    at = start
    while at + LANES <= stop:
        if word_of(wanted(values, residual, at) != _ZERO) != np.uint32(0):
            return False
        at += LANES
    while at < stop:
        value = values[at]
        if residual is not None:
            value = np.float32(value + residual[at])
        if value != _ZERO:
            return False
        at += 1
    return True


@compiled
def is_masked(mask: Any, row: Any) -> Any:
    return np.uint32(mask[row >> 5] >> np.uint32(row & 31)) & np.uint32(1) != np.uint32(0)


@compiled
def kept_values(values: Any, mask: Any, row_length: Any, phase: Any, kept: Any) -> None:
    """`kept` becomes the values of rows that are not masked, side by side."""
    to = 0
    for row in range(-(-(phase + len(values)) // row_length)):
        if not is_masked(mask, row):
            start = max(row * row_length - phase, 0)
            stop = min((row + 1) * row_length - phase, len(values))
            kept[to : to + stop - start] = values[start:stop]
            to += stop - start


@compiled
def put_back(kept: Any, mask: Any, row_length: Any, phase: Any, add: Any, values: Any) -> None:
    """The way back: rows that are not masked from `kept`, the others zero."""
    at = 0
    for row in range(-(-(phase + len(values)) // row_length)):
        start = max(row * row_length - phase, 0)
        stop = min((row + 1) * row_length - phase, len(values))
        if is_masked(mask, row):
            if not add:
                values[start:stop] = _ZERO
            continue
        if add:
            values[start:stop] += kept[at : at + stop - start]
        else:
            values[start:stop] = kept[at : at + stop - start]
        at += stop - start


@compiled
def num_unmasked(mask: Any, num_values: Any, row_length: Any, phase: Any) -> Any:
    """How many values the rows hold that are not masked."""
    total = 0
    for row in range(-(-(phase + num_values) // row_length)):
        if not is_masked(mask, row):
            start, stop = row * row_length - phase, (row + 1) * row_length - phase
            total += min(stop, num_values) - max(start, 0)
    return total


@compiled
def write_blocks(values: Any, residual: Any, block: Any, means: Any, words: Any) -> Any:
    """Means and signs of each block; the residual becomes what they do not say.

    False if a block's sum is not finite: what is written is then of no use.
    """
    number = 0
    for start in range(0, len(values), block):
        stop = min(start + block, len(values))
        upper_sum, lower_sum, num_upper = _side_sums(values, residual, start, stop)
        if not np.isfinite(upper_sum + lower_sum):
            return False
        upper = np.float32(upper_sum / num_upper if num_upper else 0.0)
        num_lower = stop - start - num_upper
        lower = np.float32(lower_sum / num_lower if num_lower else 0.0)
        means[number], means[number + 1] = upper, lower
        number += 2
        _write_run(values, residual, start, stop, upper, lower, words)
    return True


@compiled
def _side_sums(values: Any, residual: Any, start: Any, stop: Any) -> Any:
    """Sums of what is zero or more and of what is less, and how many are zero or more.

    In float64: sixteen lanes over 4,096 values, then the lanes in order, then those blocks in order.
    """
    upper, lower, num_upper = 0.0, 0.0, 0
    for first in range(start, stop, SUMMED):
        above, below = spread(0.0), spread(0.0)
        last = min(first + SUMMED, stop)
        full = first + (last - first) // LANES * LANES
        for at in range(first, full, LANES):
            doubles = to_doubles(wanted(values, residual, at))
            is_upper = doubles >= 0.0
            above = where(is_upper, above + doubles, above)
            below = where(is_upper, below, below + doubles)  # NaN goes here, and shows in the sum
            num_upper += count_ones(word_of(is_upper))
        if full < last:
            rest_values = rest_of(values, full, last, LANES)
            rest_residual = rest_of(residual, full, last, LANES)
            doubles = to_doubles(wanted(rest_values, rest_residual, 0))
            is_upper = doubles >= 0.0
            above = where(is_upper, above + doubles, above)
            below = where(is_upper, below, below + doubles)
            num_upper += count_ones(word_of(is_upper)) - (
                full + LANES - last
            )  # zeros of the padding
        upper += sum_of(above)
        lower += sum_of(below)
    return upper, lower, num_upper


@compiled
def _write_run(
    values: Any, residual: Any, start: Any, stop: Any, upper: Any, lower: Any, words: Any
) -> None:
    """The signs of a block; it begins with a word."""
    full = start + (stop - start) // _WORD * _WORD
    for at in range(start, full, _WORD):
        words[at >> 5] = _write_word(values, residual, at, upper, lower)
    if full < stop:
        rest_residual = rest_of(residual, full, stop, _WORD)
        rest_values = rest_of(values, full, stop, _WORD)
        word = _write_word(rest_values, rest_residual, 0, upper, lower)
        if residual is not None:
            residual[full:stop] = rest_residual[: stop - full]
        used = np.uint32(np.uint32(np.uint32(1) << np.uint32(stop - full)) - np.uint32(1))
        words[full >> 5] = np.uint32(word & used)


@compiled
def _write_word(values: Any, residual: Any, at: Any, upper: Any, lower: Any) -> Any:
    low = _write_row(values, residual, at, upper, lower)
    high = _write_row(values, residual, at + LANES, upper, lower)
    return np.uint32(low | np.uint32(high << _HALF_WORD))


@compiled
def _write_row(values: Any, residual: Any, at: Any, upper: Any, lower: Any) -> Any:
    row = wanted(values, residual, at)
    is_upper = row >= _ZERO
    if residual is not None:
        store(residual, at, row - where(is_upper, upper, lower))
    return word_of(is_upper)


@compiled
def read_blocks(words: Any, means: Any, block: Any, add: Any, scale: Any, out: Any) -> None:
    """What `write_blocks` wrote: `out` becomes, or with `add` grows by, one of two values a block."""
    number = 0
    for start in range(0, len(out), block):
        stop = min(start + block, len(out))
        upper = np.float32(means[number] * scale)
        lower = np.float32(means[number + 1] * scale)
        number += 2
        full = start + (stop - start) // _WORD * _WORD
        for at in range(start, full, _WORD):
            _read_word(words[at >> 5], out, at, upper, lower, add)
        if full < stop:
            rest = rest_of(out, full, stop, _WORD)
            _read_word(words[full >> 5], rest, 0, upper, lower, add)
            out[full:stop] = rest[: stop - full]


@compiled
def _read_word(word: Any, out: Any, at: Any, upper: Any, lower: Any, add: Any) -> None:
    for half in range(2):
        place = at + half * LANES
        row = where(mask_of(word), upper, lower)
        store(out, place, load(out, place) + row if add else row)
        word = np.uint32(word >> _HALF_WORD)
