"""Levels that are mostly zero, in Elias gamma codes: the way to the next other level, and its size.

The gamma code of a number is as many zeros as it has binary digits after the first, then the number:
1, 2, 3, 4, 8 are 1, 010, 011, 00100, 0001000 (Elias, 1975). For each level that is not zero follow

    gamma(steps from the one before)    sign, 1 if negative    gamma(its magnitude), if that can be > 1

(QSGD: Alistarh et al., arXiv:1610.02132, which codes so with Elias' omega; gamma is as short for
numbers below 16 and needs no loop to read). Codes fill 32-bit words from the highest bit on. Where
a code begins is known only when the one before was read, so after each 8,192 codes a mark says where
the next begins: a reader that reads at two places does not wait.

    levels that are not zero (4)    marks: bits (4) and values (4) since the last    codes (words of 4)

Not here: reading (`elias_reading.py`).
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

MARKED = 8192  # codes from mark to mark, which is 1 byte in 700
MARGIN = 2048  # words of room beyond the limit: more than the codes of 512 levels can take
_MASK = 64  # levels that one mask tells zeros from others
_LISTED = 256  # levels that are listed together: a place is a byte
_EACH_BYTE = np.uint64(0x0101010101010101)
_ONE = np.uint64(1)
_EXPONENT_OF_1 = 127
_TABLE_LEVELS = 32  # if there are no more, most codes are looked up


@inlined
def measured_nothing() -> Any:
    """Where `measure_block` begins."""
    return spread(np.uint32(0)), spread(np.uint32(0))


@inlined
def measure_block(levels: Any, zero: Any, measured: Any) -> Any:
    """Sum up, lane by lane, exponents of magnitudes, and levels that are not zero."""
    exponents, others = measured
    for at in range(0, BLOCK, LANES):
        level = load(levels, at)
        # A float's exponent is the number of binary digits after the first, and 127; that of 0 is 0.
        exponents = exponents + ((bits_of(to_floats(signed(level - zero))) >> 23) & 0xFF)
        others = where(level != zero, others + 1, others)
    return exponents, others


@compiled
def sizes_of(measured: Any, zero: Any) -> Any:
    """How many levels are not zero, and the bits of their signs and magnitudes."""
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
    """The codes of packed levels; how many words, or 0 if those are more than the limit.

    `codes` has `MARGIN` words more than the limit.
    """
    if num_marks(packed.num_levels) * 2 >= limit:
        return 0
    size: int = _write_codes(packed, _table(int(packed.zero)), _lists(), limit, codes)
    return size


@compiled
def num_marks(num_levels: Any) -> Any:
    """
    >>> num_marks(0), num_marks(8192), num_marks(8193)
    (0, 0, 1)
    """
    return max(num_levels - 1, 0) // MARKED


@compiled
def _write_codes(packed: EliasCode, table: Any, lists: Any, limit: Any, codes: Any) -> Any:
    levels, places = np.empty(BLOCK, np.uint32), np.empty(_LISTED + 8, np.uint8)
    first = 1 + 2 * num_marks(packed.num_levels)
    end = np.uint64(0), 0, first, 0
    left, mark, mark_bit, mark_value = MARKED, 1, 32 * first, 0
    for start in range(0, packed.num_values, BLOCK):
        count = unpack_block(packed.words, packed.width, start, packed.num_values, levels)
        for at in range(0, count, _LISTED):
            some, begin = levels[at : at + _LISTED], start + at
            num_found = _find_others(levels, at, count, packed.zero, lists, places)
            now = min(num_found, left)
            end = _write_some(some, begin, places[:now], packed.zero, table, codes, end)
            left -= num_found
            if left < 0:
                bit, value, left = 32 * end[2] + end[1], end[3], left + MARKED
                codes[mark], codes[mark + 1] = bit - mark_bit, value - mark_value
                mark, mark_bit, mark_value = mark + 2, bit, value
                rest = places[now:num_found]
                end = _write_some(some, begin, rest, packed.zero, table, codes, end)
        if end[2] > limit:
            return 0
    pending, num_pending, place, _ = end
    if num_pending:
        codes[place] = np.uint32(pending << np.uint64(32 - num_pending))
        place += 1
    codes[0] = packed.num_levels
    return place if place <= limit else 0


@compiled
def _write_some(
    levels: Any, start: Any, places: Any, zero: Any, table: Any, codes: Any, end: Any
) -> Any:
    """Append the codes of levels at these places.

    `end` is what is pending, how many bits that are, the next word, and the value after the last.
    """
    pending, num_pending, word, value = end
    known_ways = np.uint64(len(table) // _TABLE_LEVELS)
    value -= start
    for pair in range(0, len(places) - 1, 2):
        a, b = np.int64(places[np.uint64(pair)]), np.int64(places[np.uint64(pair + 1)])
        way_a, way_b = np.uint64(a + 1 - value), np.uint64(b - a)
        if np.uint64(way_a | way_b) < known_ways:
            code_a, length_a = _known(table, way_a, levels[np.uint64(a)])
            code_b, length_b = _known(table, way_b, levels[np.uint64(b)])
            code = np.uint64(np.uint64(code_a << length_b) | code_b)
            length = np.int64(length_a + length_b)
            pending, num_pending, word = _put(codes, word, pending, num_pending, code, length)
        else:
            for index, way in ((a, way_a), (b, way_b)):
                level = np.int64(levels[index]) - np.int64(zero)
                pending, num_pending, word = _put_any(
                    codes, word, pending, num_pending, way, level, zero
                )
        value = b + 1
    if len(places) % 2:
        index = np.int64(places[len(places) - 1])
        way, level = np.uint64(index + 1 - value), np.int64(levels[index]) - np.int64(zero)
        pending, num_pending, word = _put_any(codes, word, pending, num_pending, way, level, zero)
        value = index + 1
    return pending, num_pending, word, start + value


@inlined
def _known(table: Any, way: Any, level: Any) -> Any:
    entry = np.uint64(table[np.uint64(way * np.uint64(_TABLE_LEVELS) + np.uint64(level))])
    return entry >> np.uint64(8), np.uint64(entry & np.uint64(255))


@compiled
def _put_any(
    codes: Any, word: Any, pending: Any, num_pending: Any, way: Any, level: Any, zero: Any
) -> Any:
    """Append the code of any way and level."""
    code, length = _signed_code(level, zero)
    digits = 63 - leading_zeros(way)
    if 2 * digits + 1 + length > 32:  # too much at a time
        nothing = np.uint64(0)
        pending, num_pending, word = _put(codes, word, pending, num_pending, nothing, digits)
        pending, num_pending, word = _put(codes, word, pending, num_pending, way, digits + 1)
    else:
        code = np.uint64(np.uint64(way << np.uint64(length)) | code)
        length += 2 * digits + 1
    return _put(codes, word, pending, num_pending, code, length)


@lru_cache(maxsize=_TABLE_LEVELS)
def _table(zero: int) -> NDArray[np.uint32]:
    """Codes of 16 bits at most (shifted by 8) and their lengths, by way and level.

    Ways are fewer than a power of 2; there are none if levels are too many.
    """
    level_bits = 2 * zero.bit_length() if zero > 1 else 1
    num_ways = 1 << (17 - level_bits) // 2 if 2 * zero < _TABLE_LEVELS else 0
    table = np.zeros(num_ways * _TABLE_LEVELS, np.uint32)
    _fill_table(np.uint32(zero), table)
    return table


@compiled
def _fill_table(zero: Any, table: Any) -> None:
    for way in range(1, len(table) // _TABLE_LEVELS):
        for level in range(2 * np.int64(zero) + 1):
            if level != zero:
                code, length = _signed_code(level - np.int64(zero), zero)
                code = np.uint64(np.uint64(np.uint64(way) << np.uint64(length)) | code)
                length += 2 * (63 - leading_zeros(np.uint64(way))) + 1
                table[way * _TABLE_LEVELS + level] = np.uint32(
                    np.uint64(code << np.uint64(8)) | np.uint64(length)
                )


@lru_cache(maxsize=1)
def _lists() -> NDArray[np.uint64]:
    """The places of the ones in each byte, as bytes from the lowest on."""
    places = [[place for place in range(8) if byte >> place & 1] for byte in range(256)]
    words = [int.from_bytes(bytes(some), "little") for some in places]
    return np.array(words, np.uint64)


@compiled
def _find_others(levels: Any, first: Any, count: Any, zero: Any, lists: Any, places: Any) -> Any:
    """Places of levels from `first` on that are not zero, in order; how many.

    Eight are written for each eight levels, however many there are: no branch depends on levels.
    """
    num_found = 0
    for at in range(first, min(first + _LISTED, count), _MASK):
        mask = _others(levels, at, count, zero)
        for shift in range(0, _MASK, 8):
            byte = np.uint64(np.uint64(mask >> np.uint64(shift)) & np.uint64(255))
            offsets = np.uint64(np.uint64(at - first + shift) * _EACH_BYTE)
            store_word(places, num_found, np.uint64(lists[byte] + offsets))
            num_found += count_ones(byte)
    return num_found


@inlined
def _others(levels: Any, at: Any, count: Any, zero: Any) -> Any:
    """Which of 64 levels are not zero; those from `count` on do not count."""
    mask = np.uint64(0)
    for row in range(0, _MASK, LANES):
        found = np.uint64(word_of(load(levels, at + row) != zero))
        mask = np.uint64(mask | np.uint64(found << np.uint64(row)))
    if at + _MASK > count:
        mask = np.uint64(mask & np.uint64((_ONE << np.uint64(count - at)) - _ONE))
    return mask


@compiled
def _signed_code(level: Any, zero: Any) -> Any:
    """Sign and magnitude of a level, and how many bits those are."""
    negative = np.uint64(level < 0)
    if zero == 1:
        return negative, 1
    magnitude = np.uint64(abs(level))
    length = 2 * (63 - leading_zeros(magnitude)) + 1
    return np.uint64(np.uint64(negative << np.uint64(length)) | magnitude), length + 1


@inlined
def _put(codes: Any, place: Any, pending: Any, num_pending: Any, code: Any, length: Any) -> Any:
    """Append the lowest bits of a code, 32 at most; fewer than 32 are left pending.

    A word is stored whether it is full or not: a branch would be missed every few codes.
    """
    pending = np.uint64(np.uint64(pending << np.uint64(length)) | code)
    num_pending += length
    codes[np.uint64(place)] = np.uint32(pending >> np.uint64((num_pending - 32) & 63))
    return pending, num_pending & 31, place + (num_pending >> 5)
