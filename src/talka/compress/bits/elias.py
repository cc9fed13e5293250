"""Levels that are mostly zero, in Elias gamma codes: the way to the next other level, and its size.

The gamma code of a number is as many zeros as it has binary digits after the first, then the number:
1, 2, 3, 4, 8 are 1, 010, 011, 00100, 0001000 (Elias, 1975). For each level that is not zero follow

    gamma(steps from the one before)    sign, 1 if negative    gamma(its magnitude), if that can be > 1

(QSGD: Alistarh et al., arXiv:1610.02132, which codes so with Elias' omega; gamma is as short for
numbers below 16 and needs no loop to read). Codes fill 32-bit words from the highest bit on.

    levels that are not zero (4)    codes (words of 4)
"""

from typing import Any

import numpy as np

from talka.compress.bits.lanes import (
    LANES,
    bits_of,
    compiled,
    leading_zeros,
    load,
    signed,
    spread,
    sum_of,
    to_floats,
    trailing_zeros,
    where,
    word_of,
)
from talka.compress.bits.packing import BLOCK, unpack_block

MARGIN = 256  # words of room beyond the limit: more than the codes of 64 levels can take
_MASK = 64  # levels that one mask tells zeros from others
_ONE = np.uint64(1)
_EXPONENT_OF_1 = np.uint32(127)
_MOST_DIGITS = 28  # after the first: no section has more values, no grid more levels


@compiled
def measure_block(levels: Any, zero: Any) -> Any:
    """How many of 512 levels are not zero, and the bits of their signs and magnitudes."""
    digits, others = spread(np.uint32(0)), spread(np.uint32(0))
    for at in range(0, BLOCK, LANES):
        level = load(levels, at)
        is_other = level != zero
        # The exponent of a float is the number of binary digits after the first.
        exponent = (bits_of(to_floats(signed(level - zero))) >> 23) & 0xFF
        digits = where(is_other, digits + exponent - _EXPONENT_OF_1, digits)
        others = where(is_other, others + 1, others)
    count = np.int64(sum_of(others))
    return count, 2 * np.int64(sum_of(digits)) + count * (1 if zero == 1 else 2)


@compiled
def write_codes(words: Any, width: Any, num_values: Any, zero: Any, limit: Any, codes: Any) -> Any:
    """The codes of packed levels; how many words, or 0 if those are more than the limit.

    `codes` has `MARGIN` words more than the limit.
    """
    levels = np.empty(BLOCK, np.uint32)
    pending, num_pending, num_levels = np.uint64(0), 0, 0
    place, last = 1, -1  # of the next word, and the index of the level before
    for start in range(0, num_values, BLOCK):
        count = unpack_block(words, width, start, num_values, levels)
        for at in range(0, count, _MASK):
            mask = _others(levels, at, count, zero)
            while mask != np.uint64(0):
                index = at + trailing_zeros(mask)
                mask = np.uint64(mask & np.uint64(mask - _ONE))
                code, length = _signed_code(np.int64(levels[index]) - np.int64(zero), zero)
                gap = np.uint64(start + index - last)
                last = start + index
                digits = 63 - leading_zeros(gap)
                if 2 * digits + 1 + length > 32:  # too much at a time
                    nothing, number = np.uint64(0), digits + 1
                    pending, num_pending, place = _put(
                        codes, place, pending, num_pending, nothing, digits
                    )
                    pending, num_pending, place = _put(
                        codes, place, pending, num_pending, gap, number
                    )
                else:
                    code = np.uint64(np.uint64(gap << np.uint64(length)) | code)
                    length += 2 * digits + 1
                pending, num_pending, place = _put(codes, place, pending, num_pending, code, length)
                num_levels += 1
            if place > limit:
                return 0
    if num_pending:
        codes[place] = np.uint32(pending << np.uint64(32 - num_pending))
        place += 1
    codes[0] = num_levels
    return place if place <= limit else 0


@compiled
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


@compiled
def _put(codes: Any, place: Any, pending: Any, num_pending: Any, code: Any, length: Any) -> Any:
    """Append the lowest bits of a code, 32 at most; fewer than 32 are left pending.

    A word is stored whether it is full or not: a branch would be missed every few codes.
    """
    pending = np.uint64(np.uint64(pending << np.uint64(length)) | code)
    num_pending += length
    codes[place] = np.uint32(pending >> np.uint64((num_pending - 32) & 63))
    return pending, num_pending & 31, place + (num_pending >> 5)


@compiled
def read_codes(codes: Any, grid: Any, add: Any, scale: Any, out: Any) -> Any:
    """What `write_codes` wrote, as `read_levels` does it; False if these are no such codes."""
    if len(codes) == 0 or np.int64(codes[0]) > len(out):
        return False
    if not add:
        out[:] = 0
    units, largest = grid.units, np.uint64(grid.top >> 1)
    bit, index = 32, np.int64(-1)
    bucket, bucket_end = 0, grid.bucket
    for _ in range(np.int64(codes[0])):
        ahead = _ahead(codes, bit)
        digits = leading_zeros(ahead)
        if digits > _MOST_DIGITS:
            return False
        length = 2 * digits + 1
        index += np.int64(ahead >> np.uint64(64 - length))
        bit += length
        ahead = _ahead(codes, bit) if digits > 16 else np.uint64(ahead << np.uint64(length))
        minus, magnitude = np.int64(ahead >> np.uint64(63)), _ONE
        bit += 1
        if largest > _ONE:
            ahead = np.uint64(ahead << _ONE)
            length = 2 * min(leading_zeros(ahead), _MOST_DIGITS) + 1
            magnitude = np.uint64(ahead >> np.uint64(64 - length))
            bit += length
        if index >= len(out) or magnitude > largest or magnitude == np.uint64(0):
            return False
        while index >= bucket_end:
            bucket, bucket_end = bucket + 1, bucket_end + grid.bucket
        steps = np.float32((np.int64(magnitude) << 1) * (1 - 2 * minus))
        out[index] += np.float32(np.float32(steps * units[bucket]) * scale)
    return 0 <= 32 * len(codes) - bit < 32  # the rest of the last word, and no more, is left


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
