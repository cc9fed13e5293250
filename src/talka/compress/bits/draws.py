"""Random bits as a hash of a key and a counter: independent of order, without state.

Two multiplications mix a counter (Wellons' lowbias32: each input bit flips each output bit in half
of all cases, within 0.2%). One half of the key is added before them, the other between them.
"""

from typing import Any

import numpy as np

from talka.compiled import compiled

_M1, _M2 = np.uint32(0x7FEB352D), np.uint32(0x846CA68B)


def key_of(draw: int) -> tuple[np.uint32, np.uint32]:
    """Split 64 bits into the two halves that `draw_lanes` takes."""
    return np.uint32(draw & 0xFFFFFFFF), np.uint32(draw >> 32 & 0xFFFFFFFF)


@compiled
def draw_lanes(counters: Any, key: Any) -> Any:
    """Return 32 random bits for each of sixteen counters."""
    mixed = counters + key[0]
    mixed = (mixed ^ (mixed >> 16)) * _M1
    mixed = mixed ^ key[1]
    mixed = (mixed ^ (mixed >> 15)) * _M2
    return mixed ^ (mixed >> 16)


@compiled
def half_turn(words: Any) -> Any:
    """Swap the lower and upper 16 bits of each word.

    So two values can share one draw: the comparison with a draw is decided by the upper half, and
    by the lower half only where the upper halves are equal.
    """
    return (words << 16) | (words >> 16)
