"""Kernels that split UTF-8 into words, then look them up and count them: two loops over a chunk.

A word is stored as lanes: 64-bit numbers of eight bytes each, the first byte lowest, the last lane
padded with zeros. Most words are one lane, so they are hashed and compared in one step. Splitting
and look-up are separate loops because the processor can then overlap the look-ups of many words; a
single loop took four times as long.

Words are kept in an open-addressing hash table. A kernel that finds the table full stops before the
word and returns its index; the caller (`WordTable`) grows the table and calls again.
"""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.compiled import compiled

OUTSIDE, LINE_END, FILE_END = -1, -2, -3
"""Marks in a stream of word ids: a word outside the vocabulary, the end of a line, of a file."""

MAX_WORD_LANES: Final = 125
MAX_WORD_BYTES: Final = 8 * MAX_WORD_LANES
"""Longest word in bytes; longer ones are noise and count as outside the vocabulary."""

_NEW_LINE, _RETURN = 10, 13
_HASH_FACTOR: Final = np.uint64(0xFF51AFD7ED558CCD)
_HALF: Final = np.uint64(32)
_LOW_HALF: Final = np.uint64(0xFFFFFFFF)
_BYTE_BITS, _LANE_BITS = np.uint64(8), np.uint64(64)
_SIX, _MORE = np.uint64(0x3F), np.uint64(0x80)  # UTF-8: six bits in each byte after the first
_TWO, _THREE, _FOUR = np.uint64(0xC0), np.uint64(0xE0), np.uint64(0xF0)


class WordArrays(NamedTuple):
    """Arrays of the hash table of words."""

    slots: NDArray[np.uint64]
    """Row per slot: the first lane of the word; then its number of lanes in the upper half and its
    number plus one in the lower half. Empty slots are all zero."""
    starts: NDArray[np.int64]
    """Offsets into `lanes`: word w is lanes[starts[w]:starts[w + 1]]."""
    lanes: NDArray[np.uint64]
    num_words: NDArray[np.int64]
    """Number of words, in an array of length 1 because kernels change it."""


@compiled
def _code_point(text: Any, at: Any) -> Any:
    """Decode the character of two to four bytes at a position; return it and its length."""
    first = np.int64(text[at])
    if first < 0xE0:
        return (first & 0x1F) << 6 | text[at + 1] & 0x3F, 2
    if first < 0xF0:
        return (first & 0x0F) << 12 | (text[at + 1] & 0x3F) << 6 | text[at + 2] & 0x3F, 3
    high = (first & 0x07) << 18 | (text[at + 1] & 0x3F) << 12
    return high | (text[at + 2] & 0x3F) << 6 | text[at + 3] & 0x3F, 4


@compiled
def _utf8(point: Any) -> Any:
    """Encode a code point; return its bytes, the first one lowest, and their number of bits."""
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
def split_words(text: Any, ascii_map: Any, char_map: Any, lanes: Any, ends: Any) -> Any:
    """Write the lanes of all words and the end of each word; return the number of ends.

    A line end is a word without lanes. `ascii_map` is the part of `char_map` for single bytes. The
    arrays need half a lane and one end per byte of text.
    """
    # Idea: append the bytes of each character to a 64-bit register, `lane`, and store the register
    # when it is full or the word ends. No byte is written to memory on its own, and a word of up to
    # eight bytes costs one store.
    #
    # Layout: word i is lanes[ends[i - 1]:ends[i]] (from 0 for the first word). An end that repeats
    # the one before marks a line end.
    lane, filled_bits = np.uint64(0), np.uint64(0)
    position = num_lanes = num_ends = 0
    while position < len(text):
        # What the tokenizer makes of the next character, as UTF-8; 0 if it separates words. ASCII
        # needs one look-up in a table of 256 bytes and no decoding.
        first = text[position]
        if first < 0x80:
            letter, bits, step = np.uint64(ascii_map[first]), _BYTE_BITS, 1
        else:
            point, step = _code_point(text, position)
            letter, bits = _utf8(np.uint64(char_map[point]))
        position += step

        # A character of the word: it may be split between a full lane and the next one.
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

        # A separator: it ends the word, if there is one, and possibly the line.
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
def look_up_words(words: Any, ends: Any, done: Any, table: Any, ids: Any) -> Any:
    """Convert words to ids, beginning with word `done`, and insert new words into the table.

    Returns the number of words done: all, or those before a word that does not fit into the table.
    """
    # Idea: hash the lanes of a word and probe the table linearly from there. A slot holds the first
    # lane and the number of lanes, so nearly all words are found by comparing one row of `slots`,
    # which is in a single cache line; only words longer than eight bytes read `lanes`. The table is
    # at most half full, so probes are short.
    #
    # The arrays are locals, and known words need no call: otherwise all fields of the arrays would
    # be pushed on the stack for every word.
    slots, starts, lanes = table.slots, table.starts, table.lanes
    mask = np.uint64(len(slots) - 1)
    start = np.int64(ends[done - 1]) if done > 0 else 0
    for index in range(done, len(ends)):
        stop = np.int64(ends[index])
        if stop == start or stop - start > MAX_WORD_LANES:
            ids[index] = LINE_END if stop == start else OUTSIDE
            start = stop
            continue

        # Multiplicative hash; the upper half is folded in because the mask keeps the lower bits.
        num_lanes = np.uint64(stop - start)
        hashed = words[start] * _HASH_FACTOR
        for lane in range(start + 1, stop):
            hashed = (hashed ^ hashed >> _HALF ^ words[lane]) * _HASH_FACTOR
        slot = (hashed ^ hashed >> _HALF) & mask

        # Probe until the word or an empty slot is found. `offset + lane` is the index in `lanes` of
        # the known word's lane that corresponds to `lane` of this one.
        while slots[slot, 1] != 0:
            if slots[slot, 0] == words[start] and slots[slot, 1] >> _HALF == num_lanes:
                offset = starts[(slots[slot, 1] & _LOW_HALF) - np.uint64(1)] - start
                is_same = True
                for lane in range(start + 1, stop):
                    is_same &= lanes[offset + lane] == words[lane]
                if is_same:
                    break
            slot = (slot + np.uint64(1)) & mask

        if slots[slot, 1] == 0 and not _insert(table, slot, words, start, stop):
            return index
        ids[index] = np.int64(slots[slot, 1] & _LOW_HALF) - 1
        start = stop
    return len(ends)


@compiled
def _insert(table: Any, slot: Any, words: Any, start: Any, stop: Any) -> Any:
    """Insert the new word words[start:stop] at an empty slot; return False if the table is full."""
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
    """Count the words among ids; return the number of tokens, including words outside."""
    num_tokens = 0
    for index in range(len(ids)):
        if ids[index] >= 0:
            counts[ids[index]] += 1
        num_tokens += ids[index] >= OUTSIDE
    return num_tokens
