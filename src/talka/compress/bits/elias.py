"""Elias gamma codes for levels that are mostly zero: the distance to the next nonzero level, its size.

The gamma code of a number has as many zeros as the number has binary digits after the first, then the
number: 1, 2, 3, 4, 8 are 1, 010, 011, 00100, 0001000 (Elias, 1975). Each nonzero level is coded as

    gamma(distance from the one before)    sign, 1 if negative    gamma(magnitude), if it can be > 1

(QSGD: Alistarh et al., arXiv:1610.02132, with Elias' omega codes; gamma codes are as short for numbers
below 16 and are decoded without a loop). Codes fill 32-bit words, highest bit first. The start of a
code is known only after the previous one was decoded, so a mark after every 8,192 codes records where
the next one starts: a decoder can work on two streams at a time.

    number of nonzero levels (4)    marks: bits (4) and values (4) since the last    codes (words of 4)

Not here: decoding (`elias_reading.py`).
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.compiled import compiled, inlined
from talka.compress.bits.lanes import (
    LANES,
    bits_of,
    count_ones,
    leading_zeros,
    load,
    signed,
    spread,
    store_word,
    sum_of,
    to_floats,
    where,
    word_of,
)
from talka.compress.bits.packing import BLOCK, unpack_block

MARKED = 8192  # codes between two marks, so that marks are 1 byte in 700
MARGIN = 2048  # words allocated beyond the limit: more than the codes of 512 levels can take
_MASK = 64  # levels per mask of nonzero levels
_LISTED = 256  # levels whose nonzero positions are listed together: a position is one byte
_EACH_BYTE = np.uint64(0x0101010101010101)
_ONE = np.uint64(1)
_EXPONENT_OF_1 = 127
_TABLE_LEVELS = 32  # with at most this many levels, most codes are looked up in a table


@inlined
def empty_measure() -> Any:
    """Return the initial sums for `measure_block`."""
    return spread(np.uint32(0)), spread(np.uint32(0))


@inlined
def measure_block(levels: Any, zero: Any, measured: Any) -> Any:
    """Add up, lane by lane, the exponents of magnitudes and the number of nonzero levels."""
    exponents, num_nonzero = measured
    for at in range(0, BLOCK, LANES):
        level = load(levels, at)
        # A float's exponent is 127 plus the number of binary digits after the first; that of 0 is 0.
        exponents = exponents + ((bits_of(to_floats(signed(level - zero))) >> 23) & 0xFF)
        num_nonzero = where(level != zero, num_nonzero + 1, num_nonzero)
    return exponents, num_nonzero


@compiled
def sizes_of(measured: Any, zero: Any) -> Any:
    """Return the number of nonzero levels, and the bits of their signs and magnitudes."""
    exponents, count = np.int64(sum_of(measured[0])), np.int64(sum_of(measured[1]))
    digits = (exponents - _EXPONENT_OF_1 * count) & 0xFFFFFFFF  # the sum may have wrapped
    return count, 2 * digits + count * (1 if zero == 1 else 2)


class EliasCode(NamedTuple):
    """Packed levels (see `packing.py`) that are to be written as Elias codes."""

    words: Any
    width: int
    num_values: int
    zero: Any
    """Level that stands for zero, uint32."""
    num_levels: int
    """Number of levels that are not zero."""


def write_codes(packed: EliasCode, limit: int, codes: NDArray[np.uint32]) -> int:
    """Write the codes of packed levels; return the number of words, or 0 if it exceeds the limit.

    `codes` has room for `MARGIN` words more than the limit.
    """
    if num_marks(packed.num_levels) * 2 >= limit:
        return 0
    size: int = _write_codes(packed, _table(int(packed.zero)), _lists(), limit, codes)
    return size


@compiled
def num_marks(num_levels: Any) -> Any:
    """Return the number of marks for this many nonzero levels.

    >>> num_marks(0), num_marks(8192), num_marks(8193)
    (0, 0, 1)
    """
    return max(num_levels - 1, 0) // MARKED


@compiled
def _write_codes(packed: EliasCode, table: Any, lists: Any, limit: Any, codes: Any) -> Any:
    """Unpack blocks of 512 levels and append their codes; see `write_codes`.

    A block is processed in chunks of 256 levels. First the positions of a chunk's nonzero levels
    are listed without branches, then only those positions are visited. `left` is the number of
    codes until the next mark; a chunk that reaches it is written in two pieces, with the mark in
    between. The limit is checked once per block, hence the margin behind `codes`.
    """
    levels, places = np.empty(BLOCK, np.uint32), np.empty(_LISTED + 8, np.uint8)
    first = 1 + 2 * num_marks(packed.num_levels)
    end = np.uint64(0), 0, first, 0
    left, mark, mark_bit, mark_value = MARKED, 1, 32 * first, 0
    for start in range(0, packed.num_values, BLOCK):
        count = unpack_block(packed.words, packed.width, start, packed.num_values, levels)
        for at in range(0, count, _LISTED):
            chunk, begin = levels[at : at + _LISTED], start + at
            num_listed = _find_nonzero(levels, at, count, packed.zero, lists, places)
            num_before = min(num_listed, left)
            before = places[:num_before]
            end = _write_chunk(chunk, begin, before, packed.zero, table, codes, end)
            left -= num_listed
            if left < 0:
                bit, value, left = 32 * end[2] + end[1], end[3], left + MARKED
                codes[mark], codes[mark + 1] = bit - mark_bit, value - mark_value
                mark, mark_bit, mark_value = mark + 2, bit, value
                rest = places[num_before:num_listed]
                end = _write_chunk(chunk, begin, rest, packed.zero, table, codes, end)
        if end[2] > limit:
            return 0
    pending, num_pending, place, _ = end
    if num_pending:
        codes[place] = np.uint32(pending << np.uint64(32 - num_pending))
        place += 1
    codes[0] = packed.num_levels
    return place if place <= limit else 0


@compiled
def _write_chunk(
    levels: Any, start: Any, places: Any, zero: Any, table: Any, codes: Any, end: Any
) -> Any:
    """Append the codes of the levels at these positions of a chunk, and return the new `end`.

    `end` holds the pending bits, their number, the index of the next word, and the index of the
    value after the last one coded.
    """
    # Two levels at a time: if both distances are small, both codes come from the table (at most
    # 16 bits each) and are appended with one shift. `distance_a | distance_b` is below the table's
    # number of distances, a power of 2, only if both are, so one branch covers both.
    pending, num_pending, word, value = end
    num_known = np.uint64(len(table) // _TABLE_LEVELS)
    value -= start
    for pair in range(0, len(places) - 1, 2):
        a, b = np.int64(places[np.uint64(pair)]), np.int64(places[np.uint64(pair + 1)])
        distance_a, distance_b = np.uint64(a + 1 - value), np.uint64(b - a)
        if np.uint64(distance_a | distance_b) < num_known:
            code_a, length_a = _table_entry(table, distance_a, levels[np.uint64(a)])
            code_b, length_b = _table_entry(table, distance_b, levels[np.uint64(b)])
            code = np.uint64(np.uint64(code_a << length_b) | code_b)
            length = np.int64(length_a + length_b)
            pending, num_pending, word = _put(codes, word, pending, num_pending, code, length)
        else:
            for index, distance in ((a, distance_a), (b, distance_b)):
                level = np.int64(levels[index]) - np.int64(zero)
                pending, num_pending, word = _put_level(
                    codes, word, pending, num_pending, distance, level, zero
                )
        value = b + 1
    if len(places) % 2:
        index = np.int64(places[len(places) - 1])
        distance, level = np.uint64(index + 1 - value), np.int64(levels[index]) - np.int64(zero)
        pending, num_pending, word = _put_level(
            codes, word, pending, num_pending, distance, level, zero
        )
        value = index + 1
    return pending, num_pending, word, start + value


@inlined
def _table_entry(table: Any, distance: Any, level: Any) -> Any:
    entry = np.uint64(table[np.uint64(distance * np.uint64(_TABLE_LEVELS) + np.uint64(level))])
    return entry >> np.uint64(8), np.uint64(entry & np.uint64(255))


@compiled
def _put_level(
    codes: Any, word: Any, pending: Any, num_pending: Any, distance: Any, level: Any, zero: Any
) -> Any:
    """Append the code of a distance and a level of any size."""
    code, length = _signed_code(level, zero)
    digits = 63 - leading_zeros(distance)
    if 2 * digits + 1 + length > 32:  # more than one call of `_put` takes
        zeros = np.uint64(0)
        pending, num_pending, word = _put(codes, word, pending, num_pending, zeros, digits)
        pending, num_pending, word = _put(codes, word, pending, num_pending, distance, digits + 1)
    else:
        code = np.uint64(np.uint64(distance << np.uint64(length)) | code)
        length += 2 * digits + 1
    return _put(codes, word, pending, num_pending, code, length)


@lru_cache(maxsize=_TABLE_LEVELS)
def _table(zero: int) -> NDArray[np.uint32]:
    """Return codes of at most 16 bits (shifted by 8) with their lengths, by distance and level.

    The number of distances is a power of 2, or 0 if there are too many levels.
    """
    level_bits = 2 * zero.bit_length() if zero > 1 else 1
    num_distances = 1 << (17 - level_bits) // 2 if 2 * zero < _TABLE_LEVELS else 0
    table = np.zeros(num_distances * _TABLE_LEVELS, np.uint32)
    _fill_table(np.uint32(zero), table)
    return table


@compiled
def _fill_table(zero: Any, table: Any) -> None:
    for distance in range(1, len(table) // _TABLE_LEVELS):
        for level in range(2 * np.int64(zero) + 1):
            if level != zero:
                code, length = _signed_code(level - np.int64(zero), zero)
                code = np.uint64(np.uint64(np.uint64(distance) << np.uint64(length)) | code)
                length += 2 * (63 - leading_zeros(np.uint64(distance))) + 1
                table[distance * _TABLE_LEVELS + level] = np.uint32(
                    np.uint64(code << np.uint64(8)) | np.uint64(length)
                )


@lru_cache(maxsize=1)
def _lists() -> NDArray[np.uint64]:
    """Return, for each byte, the positions of its one bits as the bytes of a word, lowest first."""
    positions = [[place for place in range(8) if byte >> place & 1] for byte in range(256)]
    words = [int.from_bytes(bytes(places), "little") for places in positions]
    return np.array(words, np.uint64)


@compiled
def _find_nonzero(levels: Any, first: Any, count: Any, zero: Any, lists: Any, places: Any) -> Any:
    """List the positions of nonzero levels from `first`, in order; return their number.

    Eight positions are written for every eight levels, and the surplus is overwritten by the next
    write: no branch depends on the levels.
    """
    num_listed = 0
    for at in range(first, min(first + _LISTED, count), _MASK):
        mask = _nonzero_mask(levels, at, count, zero)
        for shift in range(0, _MASK, 8):
            byte = np.uint64(np.uint64(mask >> np.uint64(shift)) & np.uint64(255))
            offsets = np.uint64(np.uint64(at - first + shift) * _EACH_BYTE)
            store_word(places, num_listed, np.uint64(lists[byte] + offsets))
            num_listed += count_ones(byte)
    return num_listed


@inlined
def _nonzero_mask(levels: Any, at: Any, count: Any, zero: Any) -> Any:
    """Return a mask of the nonzero levels among 64; levels from `count` count as zero."""
    mask = np.uint64(0)
    for row in range(0, _MASK, LANES):
        nonzero = np.uint64(word_of(load(levels, at + row) != zero))
        mask = np.uint64(mask | np.uint64(nonzero << np.uint64(row)))
    if at + _MASK > count:
        mask = np.uint64(mask & np.uint64((_ONE << np.uint64(count - at)) - _ONE))
    return mask


@compiled
def _signed_code(level: Any, zero: Any) -> Any:
    """Return the code of a level's sign and magnitude, and its length in bits."""
    negative = np.uint64(level < 0)
    if zero == 1:
        return negative, 1
    magnitude = np.uint64(abs(level))
    length = 2 * (63 - leading_zeros(magnitude)) + 1
    return np.uint64(np.uint64(negative << np.uint64(length)) | magnitude), length + 1


@inlined
def _put(codes: Any, place: Any, pending: Any, num_pending: Any, code: Any, length: Any) -> Any:
    """Append the lowest `length` bits of a code, at most 32; fewer than 32 bits stay pending.

    A word is stored whether it is full or not: a branch would be mispredicted every few codes.
    """
    pending = np.uint64(np.uint64(pending << np.uint64(length)) | code)
    num_pending += length
    codes[np.uint64(place)] = np.uint32(pending >> np.uint64((num_pending - 32) & 63))
    return pending, num_pending & 31, place + (num_pending >> 5)
