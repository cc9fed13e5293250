"""Decode Elias codes to values: several codes per table look-up, two streams in turns.

Twelve bits of the stream usually hold one or two whole codes. A table look-up gives their length, the
distance they advance, and up to two levels with their positions. A chunk of levels is collected in a
small buffer before it is added to the values, which are prefetched into the cache meanwhile. Sections
with few nonzero levels or with large ones are decoded one code at a time, and only the coded values
are touched.

The format is described in `elias.py`.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from talka.compiled import compiled, inlined
from talka.compress.bits.elias import MARKED, num_marks
from talka.compress.bits.lanes import LANES, leading_zeros, load, prefetch, spread, store, to_floats
from talka.compress.bits.levels import Grid, scales_of_lanes

_BITS = 12  # per look-up: a table of 32 KB
_LOOKUPS = 4  # look-ups per load of 64 bits
_CHUNK = 4096  # values per buffer; bytes that were just written are slow to read in rows of 16
_OVERHANG = 256  # positions behind a chunk that the look-ups of one load can reach
_SPARSE_RATIO = 16  # with fewer nonzero levels than one in this many, decode code by code
_MOST_DIGITS = 28  # binary digits after the first: no section has more values, no grid more levels
_LARGEST_IN_TABLE, _LARGEST_IN_BUFFER = 31, 127
_ONE, _BYTE = np.uint64(1), np.uint64(255)


def read_codes(
    codes: NDArray[np.uint32], grid: Grid, add: Any, scale: Any, out: NDArray[np.float32]
) -> bool:
    """Decode what `write_codes` wrote, like `read_levels`; return False if the codes are invalid."""
    if len(codes) == 0 or int(codes[0]) > len(out):
        return False
    count = int(codes[0])
    if 1 + 2 * num_marks(count) > len(codes):
        return False
    if not add:
        out[:] = 0
    if count * _SPARSE_RATIO < len(out) or grid.top >> 1 > _LARGEST_IN_BUFFER:
        return bool(_read_sparse(codes, grid, scale, out))
    table = _table(min(grid.top >> 1, _LARGEST_IN_TABLE))
    return bool(_read_dense(codes, table, grid, scale, out))


@compiled
def _num_codes_after(codes: Any, number: Any) -> Any:
    """Return the number of codes between mark `number` and the next."""
    return max(0, min(MARKED, np.int64(codes[0]) - number * MARKED))


@compiled
def _end_of(codes: Any, number: Any, bit: Any, value: Any, num_values: Any) -> Any:
    """Return the bit and value at which the codes after mark `number` must end.

    They start at `bit` and `value`.
    """
    if number < num_marks(np.int64(codes[0])):
        return bit + np.int64(codes[1 + 2 * number]), value + np.int64(codes[2 + 2 * number])
    return 32 * len(codes), num_values


@compiled
def _ends_at_mark(codes: Any, number: Any, bit: Any, value: Any, end: Any) -> Any:
    """Return True if decoding stopped at the next mark, or in the last word within the values."""
    if number < num_marks(np.int64(codes[0])):
        return bit == end[0] and value == end[1]
    return 0 <= end[0] - bit < 32 and value <= end[1]


@compiled
def _read_sparse(codes: Any, grid: Any, scale: Any, out: Any) -> Any:
    """Decode one code at a time and add each level to its value; return False if invalid."""
    last, largest = num_marks(np.int64(codes[0])), np.uint64(grid.top >> 1)
    bit, value = 32 * (1 + 2 * last), 0
    bucket, bucket_end = 0, grid.bucket
    for number in range(last + 1):
        end = _end_of(codes, number, bit, value, len(out))
        for _ in range(_num_codes_after(codes, number)):
            length, distance, level = _code_at(codes, bit, largest)
            bit, value = bit + length, value + distance
            if level == 0 or value > len(out):
                return False
            if value > bucket_end:
                bucket = (value - 1) // grid.bucket
                bucket_end = (bucket + 1) * grid.bucket
            steps = np.float32(2 * level)
            out[value - 1] += np.float32(np.float32(steps * grid.units[bucket]) * scale)
        if not _ends_at_mark(codes, number, bit, value, end):
            return False
    return True


@compiled
def _code_at(codes: Any, bit: Any, largest: Any) -> Any:
    """Return length, distance and level of the code at this bit; level 0 if it is invalid."""
    bits = _next_64_bits(codes, bit)
    digits = leading_zeros(bits)
    if digits > _MOST_DIGITS:
        return 0, 0, 0
    length = 2 * digits + 1
    distance = np.int64(bits >> np.uint64(64 - length))
    bits = (
        _next_64_bits(codes, bit + length) if digits > 16 else np.uint64(bits << np.uint64(length))
    )
    is_negative, magnitude = np.int64(bits >> np.uint64(63)), _ONE
    length += 1
    if largest > _ONE:
        bits = np.uint64(bits << _ONE)
        magnitude_bits = 2 * min(leading_zeros(bits), _MOST_DIGITS) + 1
        magnitude = np.uint64(bits >> np.uint64(64 - magnitude_bits))
        length += magnitude_bits
    if magnitude > largest:
        return 0, 0, 0
    return length, distance, np.int64(magnitude) * (1 - 2 * is_negative)


@compiled
def _next_64_bits(codes: Any, bit: Any) -> Any:
    """Return the 64 bits that start at `bit`; zeros follow the last word."""
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
    """Return the decoded content of each pattern of twelve bits, as bytes of a word, lowest first.

    The bytes are: length in bits, distance that the codes advance, number of codes (0, 1 or 2),
    positions of two levels relative to the current one, and the two levels. If there is no second
    code, its level is 0 at the next position, which the next code overwrites.
    """
    table = np.zeros(1 << _BITS, np.uint64)
    _fill_table(np.uint64(largest), table)
    return table


@compiled
def _fill_table(largest: Any, table: Any) -> None:
    codes = np.zeros(3, np.uint32)
    for bits in range(len(table)):
        codes[0] = bits << (32 - _BITS)
        length, distance, level = _code_at(codes, 0, largest)
        if level == 0 or length > _BITS:
            continue
        count, second_place, second_level, advance = 1, distance, 0, distance
        next_length, next_distance, next_level = _code_at(codes, length, largest)
        if next_level != 0 and length + next_length <= _BITS:
            count, second_place, second_level = 2, distance + next_distance - 1, next_level
            length, advance = length + next_length, distance + next_distance
        entry = np.uint64(0)
        for byte in (second_level, level, second_place, distance - 1, count, advance, length):
            entry = np.uint64(np.uint64(entry << np.uint64(8)) | np.uint64(byte & 255))
        table[bits] = entry


@compiled
def _read_dense(codes: Any, table: Any, grid: Any, scale: Any, out: Any) -> Any:
    """Decode the codes after two successive marks at a time; return False if they are invalid.

    The marks are not trusted: each pair is checked to lie inside `codes` and `out` before it is
    decoded, and each stream must end exactly at the next mark.
    """
    last = num_marks(np.int64(codes[0]))
    buffers = np.empty((2, _CHUNK + _OVERHANG), np.int8)
    bit, value = 32 * (1 + 2 * last), 0
    for number in range(0, last + 1, 2):
        left_a, left_b = _num_codes_after(codes, number), _num_codes_after(codes, number + 1)
        end_a = _end_of(codes, number, bit, value, len(out))
        end_b = end_a
        if number < last:
            end_b = _end_of(codes, number + 1, end_a[0], end_a[1], len(out))
        if not (end_a[0] <= end_b[0] <= 32 * len(codes) and end_a[1] <= end_b[1] <= len(out)):
            return False
        a, b = (bit, value, left_a), (end_a[0], end_a[1], left_b)
        a, b = _read_streams(codes, table, a, end_a, b, end_b, buffers, grid, scale, out)
        if a[2] != 0 or not _ends_at_mark(codes, number, a[0], a[1], end_a):
            return False
        if number < last and (b[2] != 0 or not _ends_at_mark(codes, number + 1, b[0], b[1], end_b)):
            return False
        bit, value = end_b
    return True


@compiled
def _read_streams(
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
    """Decode two streams up to their ends and add their values to `out`.

    `a` and `b` are (bit, value, number of codes) at the start of each stream; the same three are
    returned for where decoding stopped. They differ from the ends if the codes are invalid.
    """
    # Decoding one stream is a chain of dependent steps: each look-up needs the length of the one
    # before. Two independent chains in one loop keep the processor busy during these latencies.
    #
    # Each stream has a buffer of int8 levels for one chunk of 4,096 values, plus an overhang for
    # what the last look-ups write behind it. `start` is the value at the buffer's first position,
    # `place` the next position in it, `left` the number of codes not yet decoded. When both chunks
    # are full, their levels are scaled and added to `out` in rows of 16 lanes, and the overhangs
    # move to the front. `pending` is a level whose position is beyond the buffer: a code with a
    # long distance; it is written once the buffer has moved there.
    #
    # The first inner loop advances both streams by four look-ups, with one branch each for a code
    # too long for the table. It runs while both are at or before their last bit for which look-ups
    # are valid (`lookups`); the two loops after it fill each buffer alone.
    levels_a, levels_b = buffers[0], buffers[1]
    levels_a[:], levels_b[:] = 0, 0
    largest = np.uint64(grid.top >> 1)
    # Positions are counted from the start of a row, so that rows match cache lines.
    start_a, start_b = a[1] // LANES * LANES, b[1] // LANES * LANES
    bit_a, place_a, left_a, pending_a = a[0], a[1] - start_a, a[2], 0
    bit_b, place_b, left_b, pending_b = b[0], b[1] - start_b, b[2], 0
    lookups_a, lookups_b = _last_lookup_bit(codes, end_a[0]), _last_lookup_bit(codes, end_b[0])
    while start_a < end_a[1] or start_b < end_b[1]:
        pending_a = _put_level(pending_a, place_a, levels_a)
        pending_b = _put_level(pending_b, place_b, levels_b)
        while place_a < _CHUNK and place_b < _CHUNK and bit_a <= lookups_a and bit_b <= lookups_b:
            _prefetch_rows(out, start_a + place_a)
            _prefetch_rows(out, start_b + place_b)
            bit_a, place_a, num_a, long_a = _decode_lookups(codes, table, bit_a, place_a, levels_a)
            bit_b, place_b, num_b, long_b = _decode_lookups(codes, table, bit_b, place_b, levels_b)
            left_a, left_b = left_a - num_a, left_b - num_b
            if long_a:
                bit_a, place_a, left_a, pending_a = _decode_one(
                    codes, largest, bit_a, place_a, left_a, levels_a
                )
            if long_b:
                bit_b, place_b, left_b, pending_b = _decode_one(
                    codes, largest, bit_b, place_b, left_b, levels_b
                )
        while place_a < _CHUNK and left_a > 0:
            _prefetch_rows(out, start_a + place_a)
            bit_a, place_a, left_a, pending_a = _advance_stream(
                codes, table, largest, bit_a, place_a, left_a, lookups_a, levels_a
            )
        while place_b < _CHUNK and left_b > 0:
            _prefetch_rows(out, start_b + place_b)
            bit_b, place_b, left_b, pending_b = _advance_stream(
                codes, table, largest, bit_b, place_b, left_b, lookups_b, levels_b
            )
        # Without codes left, positions may leave the buffer: bits that follow are not decoded.
        lookups_a, lookups_b = lookups_a if left_a > 0 else -1, lookups_b if left_b > 0 else -1
        _add_chunk(levels_a, start_a, end_a[1], grid, scale, out)
        _add_chunk(levels_b, start_b, end_b[1], grid, scale, out)
        start_a, place_a = start_a + _CHUNK, place_a - _CHUNK
        start_b, place_b = start_b + _CHUNK, place_b - _CHUNK
    return (bit_a, start_a + place_a, left_a), (bit_b, start_b + place_b, left_b)


@compiled
def _last_lookup_bit(codes: Any, end: Any) -> Any:
    """Return the last bit position from which four table look-ups see only valid codes.

    The last word is excluded, as it may contain padding.
    """
    return min(end, 32 * len(codes) - 32) - _LOOKUPS * _BITS


@inlined
def _prefetch_rows(out: Any, at: Any) -> None:
    prefetch(out, at)
    prefetch(out, at + LANES)


@inlined
def _decode_lookups(codes: Any, table: Any, bit: Any, place: Any, levels: Any) -> Any:
    """Decode with four look-ups; return bit, position, number of codes, and if one was too long.

    The lowest three bytes of the table entries (length, distance, number of codes) are added up in
    one word, `total`. A code too long for the table has an entry of 0, which advances nothing.
    """
    at, shift = np.uint64(bit >> 5), np.uint64(bit & 31)
    both = np.uint64(np.uint64(np.uint64(codes[at]) << np.uint64(32)) | np.uint64(codes[at + _ONE]))
    low = np.uint64(np.uint64(codes[at + _ONE + _ONE]) << shift) >> np.uint64(32)
    bits = np.uint64(np.uint64(both << shift) | low)
    total = entry = np.uint64(0)
    for _ in range(_LOOKUPS):
        entry = table[np.uint64(bits >> np.uint64(64 - _BITS))]
        bits = np.uint64(bits << np.uint64(entry & np.uint64(63)))
        here = np.uint64(np.uint64(place) + _byte(total, 1))
        levels[np.uint64(here + _byte(entry, 3))] = np.int8(_byte(entry, 5))
        levels[np.uint64(here + _byte(entry, 4))] = np.int8(_byte(entry, 6))
        total = np.uint64(total + entry)  # none of the lowest three bytes overflows
    bit, place = bit + np.int64(_byte(total, 0)), place + np.int64(_byte(total, 1))
    return bit, place, np.int64(_byte(total, 2)), entry == np.uint64(0)


@inlined
def _byte(entry: Any, number: Any) -> Any:
    return np.uint64(np.uint64(entry >> np.uint64(8 * number)) & _BYTE)


@inlined
def _advance_stream(
    codes: Any,
    table: Any,
    largest: Any,
    bit: Any,
    place: Any,
    left: Any,
    lookups: Any,
    levels: Any,
) -> Any:
    """Advance a single stream by four look-ups, or by one code if it is long or near the end."""
    if bit <= lookups:
        bit, place, count, is_long = _decode_lookups(codes, table, bit, place, levels)
        if not is_long:
            return bit, place, left - count, 0
        left -= count
    return _decode_one(codes, largest, bit, place, left, levels)


@compiled
def _decode_one(codes: Any, largest: Any, bit: Any, place: Any, left: Any, levels: Any) -> Any:
    """Decode one code of any length; return bit, position, codes left and a pending level.

    -1 codes are left if the code is invalid.
    """
    length, distance, level = _code_at(codes, bit, largest)
    if level == 0:
        return 32 * len(codes), place, -1, 0
    return bit + length, place + distance, left - 1, _put_level(level, place + distance, levels)


@inlined
def _put_level(level: Any, place: Any, levels: Any) -> Any:
    """Write a nonzero level before `place`; return it if that is beyond the buffer, otherwise 0."""
    if level == 0 or place > len(levels):
        return level
    levels[place - 1] = level
    return 0


@compiled
def _add_chunk(levels: Any, start: Any, end: Any, grid: Any, scale: Any, out: Any) -> None:
    """Add a chunk of levels to `out[start:end]`, and move the overhang to the buffer's front."""
    count = min(_CHUNK, end - start)
    full = count // LANES * LANES
    index = start // grid.bucket
    bucket_end = (index + 1) * grid.bucket
    for at in range(0, full, LANES):
        if start + at >= bucket_end:
            index, bucket_end = index + 1, bucket_end + grid.bucket
        unit = scales_of_lanes(grid.units, index, bucket_end - start - at)
        row = to_floats(load(levels, at) << 1) * unit * scale
        store(out, start + at, load(out, start + at) + row)
    for at in range(max(full, 0), count):
        unit = grid.units[(start + at) // grid.bucket]
        out[start + at] += np.float32(np.float32(np.float32(2 * levels[at]) * unit) * scale)
    for at in range(0, _OVERHANG, LANES):
        store(levels, at, load(levels, _CHUNK + at))
    for at in range(_OVERHANG, len(levels), LANES):
        store(levels, at, spread(np.int32(0)))
