"""Cut UTF-8 into words, then find and count them: two short loops over a chunk.

A word is held as lanes: eight of its bytes to a 64-bit number, the first byte lowest, the last lane
filled up with zeros. Most words are one lane, so they are hashed and compared in one step. Cutting
and finding are two loops because then a processor looks up many words at a time: as one loop they
took four times as long.

Words live in an open-addressing hash table. A kernel that finds the table full stops before the
word and says where; its caller makes room (`WordTable`) and calls again.
"""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.compiled import compiled

OUTSIDE, LINE_END, FILE_END = -1, -2, -3
"""In a stream of word ids: a word outside of the vocabulary, the end of a line, of a file."""

MAX_WORD_LANES: Final = 125
MAX_WORD_BYTES: Final = 8 * MAX_WORD_LANES
"""Longer ones are no words but rubbish; they count as outside of the vocabulary."""

_NEW_LINE, _RETURN = 10, 13
_HASH_FACTOR: Final = np.uint64(0xFF51AFD7ED558CCD)
_HALF: Final = np.uint64(32)
_LOW_HALF: Final = np.uint64(0xFFFFFFFF)
_BYTE_BITS, _LANE_BITS = np.uint64(8), np.uint64(64)
_SIX, _MORE = np.uint64(0x3F), np.uint64(0x80)  # UTF-8: six bits in each byte after the first
_TWO, _THREE, _FOUR = np.uint64(0xC0), np.uint64(0xE0), np.uint64(0xF0)


class Table(NamedTuple):
    slots: NDArray[np.uint64]
    """A row for each slot: the first lane; the number of lanes in the upper half and the number of
    the word plus one in the lower. All zero where empty."""
    starts: NDArray[np.int64]
    """Word w is lanes[starts[w]:starts[w + 1]]."""
    lanes: NDArray[np.uint64]
    num_words: NDArray[np.int64]
    """One number, in an array because kernels change it."""


@compiled
def _code_point(text: Any, at: Any) -> Any:
    """The character of two to four bytes at this place, and its number of bytes."""
    first = np.int64(text[at])
    if first < 0xE0:
        return (first & 0x1F) << 6 | text[at + 1] & 0x3F, 2
    if first < 0xF0:
        return (first & 0x0F) << 12 | (text[at + 1] & 0x3F) << 6 | text[at + 2] & 0x3F, 3
    high = (first & 0x07) << 18 | (text[at + 1] & 0x3F) << 12
    return high | (text[at + 2] & 0x3F) << 6 | text[at + 3] & 0x3F, 4


@compiled
def _utf8(point: Any) -> Any:
    """The bytes of a code point, the first one lowest, and how many bits they are."""
    if point < 0x80:
        return point, _BYTE_BITS
    last = _MORE | point & _SIX
    if point < 0x800:
        return _TWO | point >> np.uint64(6) | last << np.uint64(8), np.uint64(16)
    middle = _MORE | point >> np.uint64(6) & _SIX
    if point < 0x10000:
        tail = middle << np.uint64(8) | last << np.uint64(16)
        return _THREE | point >> np.uint64(12) | tail, np.uint64(24)
    second = _MORE | point >> np.uint64(12) & _SIX
    tail = second << np.uint64(8) | middle << np.uint64(16) | last << np.uint64(24)
    return _FOUR | point >> np.uint64(18) | tail, np.uint64(32)


@compiled
def cut_words(text: Any, plain: Any, meaning: Any, lanes: Any, ends: Any) -> Any:
    """Write the lanes of all words one after another and where each word ends; how many they are.

    A line end is a word without lanes. `plain` is the part of `meaning` for single bytes. Room for
    half a lane and one end for each byte is enough.
    """
    lane, filled_bits = np.uint64(0), np.uint64(0)
    at = num_lanes = num_ends = 0
    while at < len(text):
        first = text[at]
        if first < 0x80:
            letter, bits, step = np.uint64(plain[first]), _BYTE_BITS, 1
        else:
            point, step = _code_point(text, at)
            letter, bits = _utf8(np.uint64(meaning[point]))
        at += step
        if letter != 0:
            if filled_bits + bits > _LANE_BITS:
                if filled_bits < _LANE_BITS:
                    lane |= letter << filled_bits
                lanes[num_lanes] = lane
                num_lanes += 1
                lane = letter >> (_LANE_BITS - filled_bits)
                filled_bits += bits - _LANE_BITS
            else:
                lane |= letter << filled_bits
                filled_bits += bits
            continue
        if filled_bits > 0:
            lanes[num_lanes] = lane
            num_lanes += 1
            ends[num_ends] = num_lanes
            num_ends += 1
            lane, filled_bits = np.uint64(0), np.uint64(0)
        if first in (_NEW_LINE, _RETURN):
            ends[num_ends] = num_lanes
            num_ends += 1
    if filled_bits > 0:
        lanes[num_lanes] = lane
        ends[num_ends] = num_lanes + 1
        num_ends += 1
    return num_ends


@compiled
def find_words(words: Any, ends: Any, done: Any, table: Any, ids: Any) -> Any:
    """Turn ends into ids from number `done` on, entering new words into the table.

    Returns how many ends are done: all, or those before a word for which there is no room.
    """
    # Arrays as locals and no helper in the loop: either would push all their fields each time.
    slots, starts, lanes = table.slots, table.starts, table.lanes
    mask = np.uint64(len(slots) - 1)
    start = np.int64(ends[done - 1]) if done > 0 else 0
    for index in range(done, len(ends)):
        stop = np.int64(ends[index])
        if stop == start or stop - start > MAX_WORD_LANES:
            ids[index] = LINE_END if stop == start else OUTSIDE
            start = stop
            continue
        num_lanes = np.uint64(stop - start)
        hashed = words[start] * _HASH_FACTOR
        for lane in range(start + 1, stop):
            hashed = (hashed ^ hashed >> _HALF ^ words[lane]) * _HASH_FACTOR
        slot = (hashed ^ hashed >> _HALF) & mask
        while slots[slot, 1] != 0:
            if slots[slot, 0] == words[start] and slots[slot, 1] >> _HALF == num_lanes:
                offset = starts[(slots[slot, 1] & _LOW_HALF) - np.uint64(1)] - start
                is_same = True
                for lane in range(start + 1, stop):
                    is_same &= lanes[offset + lane] == words[lane]
                if is_same:
                    break
            slot = (slot + np.uint64(1)) & mask
        if slots[slot, 1] == 0 and not _enter(table, slot, words, start, stop):
            return index
        ids[index] = np.int64(slots[slot, 1] & _LOW_HALF) - 1
        start = stop
    return len(ends)


@compiled
def _enter(table: Any, slot: Any, words: Any, start: Any, stop: Any) -> Any:
    """Give an empty slot to the new word words[start:stop], if there is room."""
    number = table.num_words[0]
    offset = table.starts[number] - start
    if number + 1 == len(table.starts) or offset + stop > len(table.lanes):
        return False
    for lane in range(start, stop):
        table.lanes[offset + lane] = words[lane]
    table.slots[slot, 0] = words[start]
    table.slots[slot, 1] = np.uint64(stop - start) << _HALF | np.uint64(number + 1)
    table.starts[number + 1] = offset + stop
    table.num_words[0] = number + 1
    return True


@compiled
def count_ids(ids: Any, counts: Any) -> Any:
    """Count the words among ids; how many tokens there are, words outside included."""
    num_tokens = 0
    for index in range(len(ids)):
        if ids[index] >= 0:
            counts[ids[index]] += 1
        num_tokens += ids[index] >= OUTSIDE
    return num_tokens
