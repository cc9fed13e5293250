"""Pack numbers of a few bits: blocks of 512 as 16 lanes of 32 numbers, the rest sequentially.

A block of numbers of `width` bits takes `16 * width` words: lane i holds the numbers i, 16 + i,
32 + i, ... starting at the lowest bit of its first word. So sixteen numbers are packed at a time,
with the same shifts. The incomplete block at the end is packed as a single lane, in order.
"""

from typing import Any

import numpy as np

from talka.compiled import compiled
from talka.compress.bits.lanes import LANES, load, spread, store

_WORD = 32
BLOCK = LANES * _WORD


def num_words(num_numbers: int, width: int) -> int:
    """Return the number of 32-bit words that this many packed numbers take.

    >>> num_words(512, 3), num_words(515, 3)
    (48, 49)
    """
    blocks, rest = divmod(num_numbers, BLOCK)
    return blocks * LANES * width + -(-rest * width // _WORD)


@compiled
def pack(numbers: Any, width: Any, words: Any, at: Any) -> None:
    """Pack a block of numbers below 2^width into `words[at : at + 16 * width]`."""
    pending, shift = spread(np.uint32(0)), 0
    for row in range(_WORD):
        number = load(numbers, row * LANES)
        pending = pending | (number << shift)
        shift += width
        if shift >= _WORD:
            store(words, at, pending)
            at += LANES
            shift -= _WORD
            pending = number >> (width - shift)


@compiled
def unpack(words: Any, at: Any, width: Any, numbers: Any) -> None:
    """Unpack the block of numbers in `words[at : at + 16 * width]`."""
    kept = np.uint32((1 << width) - 1)
    word, shift = load(words, at), 0
    for row in range(_WORD):
        number = word >> shift
        shift += width
        if shift >= _WORD and row + 1 < _WORD:
            at += LANES
            word = load(words, at)
            shift -= _WORD
            number = number | (word << (width - shift))
        store(numbers, row * LANES, number & kept)


@compiled
def pack_rest(numbers: Any, count: Any, width: Any, words: Any, at: Any) -> None:
    """Pack the first `count` numbers sequentially into `words[at:]`."""
    words[at:] = 0
    for index in range(count):
        place, shift = at + (index * width >> 5), np.uint64(index * width & 31)
        both = np.uint64(np.uint64(numbers[index]) << shift)
        words[place] |= np.uint32(both)
        if both >> np.uint64(_WORD):
            words[place + 1] = np.uint32(both >> np.uint64(_WORD))


@compiled
def unpack_rest(words: Any, at: Any, width: Any, numbers: Any, count: Any) -> None:
    """Unpack `count` numbers that were packed sequentially; the others become zero."""
    kept = np.uint64((1 << width) - 1)
    numbers[:] = 0
    for index in range(count):
        place, shift = at + (index * width >> 5), np.uint64(index * width & 31)
        both = np.uint64(words[place])
        if place + 1 < len(words):
            both = np.uint64(both | (np.uint64(words[place + 1]) << np.uint64(_WORD)))
        numbers[index] = np.uint32((both >> shift) & kept)


@compiled
def unpack_block(words: Any, width: Any, start: Any, num_numbers: Any, numbers: Any) -> Any:
    """Unpack up to 512 numbers from `start`; return their number."""
    count = min(BLOCK, num_numbers - start)
    if count == BLOCK:
        unpack(words, start * width >> 5, width, numbers)
    else:
        unpack_rest(words, start * width >> 5, width, numbers, count)
    return count
