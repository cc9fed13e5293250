"""Kernels for one bit per value: means of both signs, packed signs, rows of zeros.

Values are cut into blocks with two means each: of the values at or above zero, and of those below.
Signs fill 32-bit words, lowest bit first, and each block starts at a word. Rows of a matrix that are
all zero are masked and not sent. The ranges between them are called runs; a block may continue in the
next run. The first and the last row may be incomplete, as a slice need not end where a row does.
"""

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from talka.compiled import compiled
from talka.compress.bits.dense import rest_of, wanted
from talka.compress.bits.lanes import (
    LANES,
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

SUMMED = 4096  # values summed in lanes before the lanes are added up
_WORD = 32
_REPLACE = False  # value of `add`: overwrite
_ZERO, _HALF_WORD = np.float32(0), np.uint32(16)


@compiled
def find_zero_rows(values: Any, residual: Any, row_length: Any, phase: Any, mask: Any) -> Any:
    """Set the mask bits of rows that are all zero; return the number of values in them."""
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


def part_of(array: Any, block: Any, size: Any) -> Any:
    """Return `block[:size]`, or None if `array` is None. For kernels only."""
    raise NotImplementedError


def _part_of(array: Any, block: Any, size: Any) -> Any:
    def of_none(array: Any, block: Any, size: Any) -> Any:
        return None

    def part_of(array: Any, block: Any, size: Any) -> Any:
        return block[:size]

    return of_none if isinstance(array, types.NoneType) else part_of


overload(part_of)(_part_of)


@compiled
def write_blocks(
    values: Any, residual: Any, starts: Any, stops: Any, block: Any, means: Any, words: Any
) -> Any:
    """Write means and signs of each block of values in the runs; update the residual.

    The residual becomes the difference to the means, and zero in the gaps between runs. Returns
    False if a block's sum is not finite; the output is then invalid.
    """
    # Most blocks lie inside one run and are processed in place. A block that crosses a gap is
    # gathered into a contiguous buffer first, and its residual scattered back afterwards, so that
    # the row kernels always see contiguous values. Without gaps the buffers are empty.
    whole_block = np.empty(block if len(starts) > 1 else 0, np.float32)
    rest_block = np.empty(len(whole_block) if residual is not None else 0, np.float32)
    run, at, number, left = 0, starts[0], 0, (stops - starts).sum()
    while left > 0:
        size = min(block, left)
        if stops[run] - at >= size:
            is_finite = _write_block(values, residual, at, at + size, means, words, number, block)
            run, at = _after(starts, stops, run, at + size)
        else:
            first, first_at = run, at
            run, at = _gather(values, starts, stops, run, at, whole_block[:size])
            kept = part_of(residual, rest_block, size)
            if residual is not None:
                _gather(residual, starts, stops, first, first_at, rest_block[:size])
            is_finite = _write_block(whole_block, kept, 0, size, means, words, number, block)
            if residual is not None:
                _scatter(rest_block[:size], starts, stops, first, first_at, _REPLACE, residual)
        if not is_finite:
            return False
        number += 1
        left -= size
    if residual is not None:
        _clear_gaps(starts, stops, residual)
    return True


@compiled
def _write_block(
    values: Any,
    residual: Any,
    start: Any,
    stop: Any,
    means: Any,
    words: Any,
    number: Any,
    block: Any,
) -> Any:
    upper_sum, lower_sum, num_upper = _side_sums(values, residual, start, stop)
    if not np.isfinite(upper_sum + lower_sum):
        return False
    num_lower = stop - start - num_upper
    upper = np.float32(upper_sum / num_upper if num_upper else 0.0)
    lower = np.float32(lower_sum / num_lower if num_lower else 0.0)
    means[2 * number], means[2 * number + 1] = upper, lower
    _write_run(values, residual, start, stop, upper, lower, words[number * block >> 5 :])
    return True


@compiled
def _after(starts: Any, stops: Any, run: Any, at: Any) -> Any:
    """Return run and index of the next value: `at`, or the next run's start at the end of a run."""
    if at == stops[run] and run + 1 < len(starts):
        return run + 1, starts[run + 1]
    return run, at


@compiled
def _gather(values: Any, starts: Any, stops: Any, run: Any, at: Any, block: Any) -> Any:
    """Fill a block from the runs; return run and index of the value after it."""
    done = 0
    while done < len(block):
        size = min(stops[run] - at, len(block) - done)
        block[done : done + size] = values[at : at + size]
        done += size
        run, at = _after(starts, stops, run, at + size)
    return run, at


@compiled
def _scatter(block: Any, starts: Any, stops: Any, run: Any, at: Any, add: Any, out: Any) -> Any:
    done = 0
    while done < len(block):
        size = min(stops[run] - at, len(block) - done)
        if add:
            out[at : at + size] += block[done : done + size]
        else:
            out[at : at + size] = block[done : done + size]
        done += size
        run, at = _after(starts, stops, run, at + size)
    return run, at


@compiled
def _clear_gaps(starts: Any, stops: Any, out: Any) -> None:
    before = 0
    for run in range(len(starts)):
        out[before : starts[run]] = _ZERO
        before = stops[run]
    out[before:] = _ZERO


@compiled
def _side_sums(values: Any, residual: Any, start: Any, stop: Any) -> Any:
    """Return the sums of values at or above zero and below, and how many are at or above zero.

    Sums are float64 in a fixed order: sixteen lanes over 4,096 values, then the lanes in order,
    then those groups in order. So the result does not depend on the width of vector registers.
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
            below = where(
                is_upper, below, below + doubles
            )  # NaN is added here, and seen in the sum
            num_upper += count_ones(word_of(is_upper))
        if full < last:
            rest_values = rest_of(values, full, last, LANES)
            rest_residual = rest_of(residual, full, last, LANES)
            doubles = to_doubles(wanted(rest_values, rest_residual, 0))
            is_upper = doubles >= 0.0
            above = where(is_upper, above + doubles, above)
            below = where(is_upper, below, below + doubles)
            num_padded = full + LANES - last  # padding zeros were counted as upper
            num_upper += count_ones(word_of(is_upper)) - num_padded
        upper += sum_of(above)
        lower += sum_of(below)
    return upper, lower, num_upper


@compiled
def _write_run(
    values: Any, residual: Any, start: Any, stop: Any, upper: Any, lower: Any, words: Any
) -> None:
    """Write the signs of a block, starting at a word, and update its residual."""
    full = start + (stop - start) // _WORD * _WORD
    for at in range(start, full, _WORD):
        words[(at - start) >> 5] = _write_word(values, residual, at, upper, lower)
    if full < stop:
        rest_residual = rest_of(residual, full, stop, _WORD)
        rest_values = rest_of(values, full, stop, _WORD)
        word = _write_word(rest_values, rest_residual, 0, upper, lower)
        if residual is not None:
            residual[full:stop] = rest_residual[: stop - full]
        used = np.uint32(np.uint32(np.uint32(1) << np.uint32(stop - full)) - np.uint32(1))
        words[(full - start) >> 5] = np.uint32(word & used)


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
def read_blocks(
    words: Any, means: Any, starts: Any, stops: Any, block: Any, add: Any, scale: Any, out: Any
) -> None:
    """Decode what `write_blocks` wrote: set `out`, or with `add` increase it, by the means."""
    whole_block = np.empty(-(-block // _WORD) * _WORD if len(starts) > 1 else 0, np.float32)
    run, at, number, left = 0, starts[0], 0, (stops - starts).sum()
    while left > 0:
        size = min(block, left)
        upper = np.float32(means[2 * number] * scale)
        lower = np.float32(means[2 * number + 1] * scale)
        signs = words[number * block >> 5 :]
        if stops[run] - at >= size:
            _read_run(signs, out, at, at + size, upper, lower, add)
            run, at = _after(starts, stops, run, at + size)
        else:
            _read_run(signs, whole_block, 0, size, upper, lower, _REPLACE)
            run, at = _scatter(whole_block[:size], starts, stops, run, at, add, out)
        number += 1
        left -= size
    if not add:
        _clear_gaps(starts, stops, out)


@compiled
def _read_run(
    words: Any, out: Any, start: Any, stop: Any, upper: Any, lower: Any, add: Any
) -> None:
    full = start + (stop - start) // _WORD * _WORD
    for at in range(start, full, _WORD):
        _read_word(words[(at - start) >> 5], out, at, upper, lower, add)
    if full < stop:
        rest = rest_of(out, full, stop, _WORD)
        _read_word(words[(full - start) >> 5], rest, 0, upper, lower, add)
        out[full:stop] = rest[: stop - full]


@compiled
def _read_word(word: Any, out: Any, at: Any, upper: Any, lower: Any, add: Any) -> None:
    for half in range(2):
        place = at + half * LANES
        row = where(mask_of(word), upper, lower)
        store(out, place, load(out, place) + row if add else row)
        word = np.uint32(word >> _HALF_WORD)
