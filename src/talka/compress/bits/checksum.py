"""A checksum at the speed of memory. It detects accidental damage; it is not a signature.

Four rows of sixteen 32-bit words are each multiplied into their lanes and rotated (the round of
xxHash32); the lanes, the length and the rest are mixed at the end. Flipping any single bit changes the
sum: each round maps different words to different lanes, each mix maps different lanes to different
sums.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from talka.compiled import compiled
from talka.compress.bits.lanes import LANES, counting, load, store

_P1, _P2, _P3 = np.uint32(2654435761), np.uint32(2246822519), np.uint32(3266489917)
_ROWS = 4  # independent of each other, so that the multiplications overlap


def checksum(data: NDArray[np.uint8]) -> int:
    """Return a number below 2^32 that depends on every byte and its position."""
    whole = len(data) // 4 * 4
    return int(_checksum(data[:whole].view(np.uint32), data[whole:]))


@compiled
def _checksum(words: Any, rest: Any) -> Any:
    a, b = (counting() + 1) * _P1, (counting() + 17) * _P1
    c, d = (counting() + 33) * _P1, (counting() + 49) * _P1
    full = len(words) // (_ROWS * LANES) * (_ROWS * LANES)
    for at in range(0, full, _ROWS * LANES):
        a = _round(a, load(words, at))
        b = _round(b, load(words, at + LANES))
        c = _round(c, load(words, at + 2 * LANES))
        d = _round(d, load(words, at + 3 * LANES))
    lanes = np.empty(_ROWS * LANES, np.uint32)
    store(lanes, 0, a)
    store(lanes, LANES, b)
    store(lanes, 2 * LANES, c)
    store(lanes, 3 * LANES, d)
    total = np.uint32(4 * len(words) + len(rest))
    for lane in lanes:
        total = _mix(total, lane)
    for word in words[full:]:
        total = _mix(total, word)
    for byte in rest:
        total = _mix(total, np.uint32(byte))
    return total


@compiled
def _round(lanes: Any, words: Any) -> Any:
    mixed = lanes + words * _P2
    return ((mixed << 13) | (mixed >> 19)) * _P1


@compiled
def _mix(total: Any, word: Any) -> Any:
    mixed = np.uint32(np.uint32(total ^ word) * _P2)
    mixed = np.uint32(mixed ^ np.uint32(mixed >> np.uint32(15)))
    return np.uint32(mixed * _P3)
