"""Elias codes back to values: several codes of a table at once, at two places in turns.

Twelve bits of the stream hold one or two codes most of the time. What these say is looked up: how
long they are, how far they go, and two levels with their places. A chunk of levels is gathered in a
small buffer before it is added to the values, which are on their way into the cache meanwhile.
Sections of few or of large levels are read one code at a time, and only those values are touched.

What codes are stands in `elias.py`.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from talka.compiled import compiled, inlined
from talka.compress.bits.elias import MARKED, num_marks
from talka.compress.bits.lanes import LANES, leading_zeros, load, prefetch, spread, store, to_floats
from talka.compress.bits.levels import Grid, of_buckets

_BITS = 12  # that are looked up: a table of 32 KB
_AT_ONCE = 4  # look-ups of one load of 64 bits
_CHUNK = 4096  # values; bytes that were just written are slow to read in rows of 16
_BEYOND = 256  # what is looked up at once goes no further than this
_FEW = 16  # one level in so many values, or fewer, are few
_MOST_DIGITS = 28  # after the first: no section has more values, no grid more levels
_LARGEST_IN_TABLE, _LARGEST_IN_BUFFER = 31, 127
_ONE, _BYTE = np.uint64(1), np.uint64(255)


def read_codes(
    codes: NDArray[np.uint32], grid: Grid, add: Any, scale: Any, out: NDArray[np.float32]
) -> bool:
    """What `write_codes` wrote, as `read_levels` does it; False if these are no such codes."""
    if len(codes) == 0 or int(codes[0]) > len(out):
        return False
    count = int(codes[0])
    if 1 + 2 * num_marks(count) > len(codes):
        return False
    if not add:
        out[:] = 0
    if count * _FEW < len(out) or grid.top >> 1 > _LARGEST_IN_BUFFER:
        return bool(_read_few(codes, grid, scale, out))
    table = _table(min(grid.top >> 1, _LARGEST_IN_TABLE))
    return bool(_read_many(codes, table, grid, scale, out))


@compiled
def _num_codes(codes: Any, number: Any) -> Any:
    """After mark `number` and before the next."""
    return max(0, min(MARKED, np.int64(codes[0]) - number * MARKED))


@compiled
def _end_of(codes: Any, number: Any, bit: Any, value: Any, num_values: Any) -> Any:
    """Where the codes of mark `number`, which begin at this bit and value, have to end."""
    if number < num_marks(np.int64(codes[0])):
        return bit + np.int64(codes[1 + 2 * number]), value + np.int64(codes[2 + 2 * number])
    return 32 * len(codes), num_values


@compiled
def _ends_well(codes: Any, number: Any, bit: Any, value: Any, end: Any) -> Any:
    """At the next mark, or in the last word, and in no value that is not there."""
    if number < num_marks(np.int64(codes[0])):
        return bit == end[0] and value == end[1]
    return 0 <= end[0] - bit < 32 and value <= end[1]


@compiled
def _read_few(codes: Any, grid: Any, scale: Any, out: Any) -> Any:
    last, largest = num_marks(np.int64(codes[0])), np.uint64(grid.top >> 1)
    bit, value = 32 * (1 + 2 * last), 0
    bucket, bucket_end = 0, grid.bucket
    for number in range(last + 1):
        end = _end_of(codes, number, bit, value, len(out))
        for _ in range(_num_codes(codes, number)):
            length, way, level = _code_at(codes, bit, largest)
            bit, value = bit + length, value + way
            if level == 0 or value > len(out):
                return False
            if value > bucket_end:
                bucket = (value - 1) // grid.bucket
                bucket_end = (bucket + 1) * grid.bucket
            steps = np.float32(2 * level)
            out[value - 1] += np.float32(np.float32(steps * grid.units[bucket]) * scale)
        if not _ends_well(codes, number, bit, value, end):
            return False
    return True


@compiled
def _code_at(codes: Any, bit: Any, largest: Any) -> Any:
    """Length, way and level of the code that begins here; level 0 if it is none."""
    ahead = _ahead(codes, bit)
    digits = leading_zeros(ahead)
    if digits > _MOST_DIGITS:
        return 0, 0, 0
    length = 2 * digits + 1
    way = np.int64(ahead >> np.uint64(64 - length))
    ahead = _ahead(codes, bit + length) if digits > 16 else np.uint64(ahead << np.uint64(length))
    minus, magnitude = np.int64(ahead >> np.uint64(63)), _ONE
    length += 1
    if largest > _ONE:
        ahead = np.uint64(ahead << _ONE)
        more = 2 * min(leading_zeros(ahead), _MOST_DIGITS) + 1
        magnitude = np.uint64(ahead >> np.uint64(64 - more))
        length += more
    if magnitude > largest:
        return 0, 0, 0
    return length, way, np.int64(magnitude) * (1 - 2 * minus)


@compiled
def _ahead(codes: Any, bit: Any) -> Any:
    """64 bits from `bit` on; zeros follow the last word."""
    at, shift = bit >> 5, np.uint64(bit & 31)
    if at + 2 < len(codes):
        first, second, third = codes[at], codes[at + 1], codes[at + 2]
    else:
        first = codes[at] if at < len(codes) else np.uint32(0)
        second = codes[at + 1] if at + 1 < len(codes) else np.uint32(0)
        third = np.uint32(0)
    both = np.uint64(np.uint64(np.uint64(first) << np.uint64(32)) | np.uint64(second))
    low = np.uint64(np.uint64(third) << shift) >> np.uint64(32)
    return np.uint64(np.uint64(both << shift) | low)


@lru_cache(maxsize=_LARGEST_IN_TABLE)
def _table(largest: int) -> NDArray[np.uint64]:
    """What the next twelve bits say, in bytes from the lowest on.

    Their length, the values they go on, how many codes they are (0, 1 or 2), the places of two
    levels from here on, and those levels. Where there is no second one, a zero stands at the next
    place, which will be overwritten.
    """
    table = np.zeros(1 << _BITS, np.uint64)
    _fill_table(np.uint64(largest), table)
    return table


@compiled
def _fill_table(largest: Any, table: Any) -> None:
    codes = np.zeros(3, np.uint32)
    for bits in range(len(table)):
        codes[0] = bits << (32 - _BITS)
        length, way, level = _code_at(codes, 0, largest)
        if level == 0 or length > _BITS:
            continue
        count, place, other = 1, way, 0
        more, further, found = _code_at(codes, length, largest)
        if found != 0 and length + more <= _BITS:
            count, place, other = 2, way + further - 1, found
            length, further = length + more, way + further
        else:
            further = way
        entry = np.uint64(0)
        for byte in (other, level, place, way - 1, count, further, length):
            entry = np.uint64(np.uint64(entry << np.uint64(8)) | np.uint64(byte & 255))
        table[bits] = entry


@compiled
def _read_many(codes: Any, table: Any, grid: Any, scale: Any, out: Any) -> Any:
    last = num_marks(np.int64(codes[0]))
    buffers = np.empty((2, _CHUNK + _BEYOND), np.int8)
    bit, value = 32 * (1 + 2 * last), 0
    for number in range(0, last + 1, 2):
        left_a, left_b = _num_codes(codes, number), _num_codes(codes, number + 1)
        end_a = _end_of(codes, number, bit, value, len(out))
        end_b = end_a
        if number < last:
            end_b = _end_of(codes, number + 1, end_a[0], end_a[1], len(out))
        if not (end_a[0] <= end_b[0] <= 32 * len(codes) and end_a[1] <= end_b[1] <= len(out)):
            return False
        a, b = (bit, value, left_a), (end_a[0], end_a[1], left_b)
        a, b = _read_two(codes, table, a, end_a, b, end_b, buffers, grid, scale, out)
        if a[2] != 0 or not _ends_well(codes, number, a[0], a[1], end_a):
            return False
        if number < last and (b[2] != 0 or not _ends_well(codes, number + 1, b[0], b[1], end_b)):
            return False
        bit, value = end_b
    return True


@compiled
def _read_two(
    codes: Any,
    table: Any,
    a: Any,
    end_a: Any,
    b: Any,
    end_b: Any,
    buffers: Any,
    grid: Any,
    scale: Any,
    out: Any,
) -> Any:
    """Add what stands from `a` and `b` on, each a bit, a value and a number of codes, to the ends.

    Gives the same three of where reading ended; that is elsewhere if the codes are wrong.
    """
    levels_a, levels_b = buffers[0], buffers[1]
    levels_a[:], levels_b[:] = 0, 0
    largest = np.uint64(grid.top >> 1)
    # Places are counted from the start of a row on, so that rows are those of the cache.
    start_a, start_b = a[1] // LANES * LANES, b[1] // LANES * LANES
    bit_a, place_a, left_a, late_a = a[0], a[1] - start_a, a[2], 0
    bit_b, place_b, left_b, late_b = b[0], b[1] - start_b, b[2], 0
    full_a, full_b = _last_look(codes, end_a[0]), _last_look(codes, end_b[0])
    while start_a < end_a[1] or start_b < end_b[1]:
        late_a, late_b = _put(late_a, place_a, levels_a), _put(late_b, place_b, levels_b)
        while place_a < _CHUNK and place_b < _CHUNK and bit_a <= full_a and bit_b <= full_b:
            _fetch(out, start_a + place_a)
            _fetch(out, start_b + place_b)
            bit_a, place_a, num_a, long_a = _look(codes, table, bit_a, place_a, levels_a)
            bit_b, place_b, num_b, long_b = _look(codes, table, bit_b, place_b, levels_b)
            left_a, left_b = left_a - num_a, left_b - num_b
            if long_a:
                bit_a, place_a, left_a, late_a = _one(
                    codes, largest, bit_a, place_a, left_a, levels_a
                )
            if long_b:
                bit_b, place_b, left_b, late_b = _one(
                    codes, largest, bit_b, place_b, left_b, levels_b
                )
        while place_a < _CHUNK and left_a > 0:
            _fetch(out, start_a + place_a)
            bit_a, place_a, left_a, late_a = _some(
                codes, table, largest, bit_a, place_a, left_a, full_a, levels_a
            )
        while place_b < _CHUNK and left_b > 0:
            _fetch(out, start_b + place_b)
            bit_b, place_b, left_b, late_b = _some(
                codes, table, largest, bit_b, place_b, left_b, full_b, levels_b
            )
        # Places are in the buffer only as long as codes are left, whatever bits follow.
        full_a, full_b = full_a if left_a > 0 else -1, full_b if left_b > 0 else -1
        _add(levels_a, start_a, end_a[1], grid, scale, out)
        _add(levels_b, start_b, end_b[1], grid, scale, out)
        start_a, place_a = start_a + _CHUNK, place_a - _CHUNK
        start_b, place_b = start_b + _CHUNK, place_b - _CHUNK
    return (bit_a, start_a + place_a, left_a), (bit_b, start_b + place_b, left_b)


@compiled
def _last_look(codes: Any, end: Any) -> Any:
    """The last bit from which on four look-ups see nothing but codes: of the last word who knows."""
    return min(end, 32 * len(codes) - 32) - _AT_ONCE * _BITS


@inlined
def _fetch(out: Any, at: Any) -> None:
    prefetch(out, at)
    prefetch(out, at + LANES)


@inlined
def _look(codes: Any, table: Any, bit: Any, place: Any, levels: Any) -> Any:
    """Levels of the next codes: bit and place after them, how many, and whether one was too long."""
    at, shift = np.uint64(bit >> 5), np.uint64(bit & 31)
    both = np.uint64(np.uint64(np.uint64(codes[at]) << np.uint64(32)) | np.uint64(codes[at + _ONE]))
    low = np.uint64(np.uint64(codes[at + _ONE + _ONE]) << shift) >> np.uint64(32)
    ahead = np.uint64(np.uint64(both << shift) | low)
    total = entry = np.uint64(0)
    for _ in range(_AT_ONCE):
        entry = table[np.uint64(ahead >> np.uint64(64 - _BITS))]
        ahead = np.uint64(ahead << np.uint64(entry & np.uint64(63)))
        here = np.uint64(np.uint64(place) + _byte(total, 1))
        levels[np.uint64(here + _byte(entry, 3))] = np.int8(_byte(entry, 5))
        levels[np.uint64(here + _byte(entry, 4))] = np.int8(_byte(entry, 6))
        total = np.uint64(total + entry)  # of the lowest three bytes none overflows
    bit, place = bit + np.int64(_byte(total, 0)), place + np.int64(_byte(total, 1))
    return bit, place, np.int64(_byte(total, 2)), entry == np.uint64(0)


@inlined
def _byte(entry: Any, number: Any) -> Any:
    return np.uint64(np.uint64(entry >> np.uint64(8 * number)) & _BYTE)


@inlined
def _some(
    codes: Any,
    table: Any,
    largest: Any,
    bit: Any,
    place: Any,
    left: Any,
    full: Any,
    levels: Any,
) -> Any:
    """Of one place alone: a look, or one code if that is too long or near the end."""
    if bit <= full:
        bit, place, count, is_long = _look(codes, table, bit, place, levels)
        if not is_long:
            return bit, place, left - count, 0
        left -= count
    return _one(codes, largest, bit, place, left, levels)


@compiled
def _one(codes: Any, largest: Any, bit: Any, place: Any, left: Any, levels: Any) -> Any:
    """One code of any length: bit, place, codes left (-1 if this is none) and a level, as `_put`."""
    length, way, level = _code_at(codes, bit, largest)
    if level == 0:
        return 32 * len(codes), place, -1, 0
    return bit + length, place + way, left - 1, _put(level, place + way, levels)


@inlined
def _put(level: Any, place: Any, levels: Any) -> Any:
    """A level before `place`, if there is one and that is in the buffer; what is to be put later."""
    if level == 0 or place > len(levels):
        return level
    levels[place - 1] = level
    return 0


@compiled
def _add(levels: Any, start: Any, end: Any, grid: Any, scale: Any, out: Any) -> None:
    """Add a chunk of levels to `out[start:end]`, and make room for the next."""
    count = min(_CHUNK, end - start)
    full = count // LANES * LANES
    index = start // grid.bucket
    bucket_end = (index + 1) * grid.bucket
    for at in range(0, full, LANES):
        if start + at >= bucket_end:
            index, bucket_end = index + 1, bucket_end + grid.bucket
        unit = of_buckets(grid.units, index, bucket_end - start - at)
        row = to_floats(load(levels, at) << 1) * unit * scale
        store(out, start + at, load(out, start + at) + row)
    for at in range(max(full, 0), count):
        unit = grid.units[(start + at) // grid.bucket]
        out[start + at] += np.float32(np.float32(np.float32(2 * levels[at]) * unit) * scale)
    for at in range(0, _BEYOND, LANES):
        store(levels, at, load(levels, _CHUNK + at))
    for at in range(_BEYOND, len(levels), LANES):
        store(levels, at, spread(np.int32(0)))
