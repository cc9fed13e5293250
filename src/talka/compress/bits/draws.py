"""Random bits: a hash of a key and a counter, so they depend on no order and no state.

Two multiplications mix a counter (Wellons' lowbias32: each bit of it flips each bit of the result in
half of all cases, within 0.2%); half of the key comes in before them, half between them.
"""

from typing import Any

import numpy as np

from talka.compiled import compiled

_M1, _M2 = np.uint32(0x7FEB352D), np.uint32(0x846CA68B)


def key_of(draw: int) -> tuple[np.uint32, np.uint32]:
    """The two halves of 64 bits, for `draw_lanes`."""
    return np.uint32(draw & 0xFFFFFFFF), np.uint32(draw >> 32 & 0xFFFFFFFF)


@compiled
def draw_lanes(counters: Any, key: Any) -> Any:
    """32 random bits for each of sixteen counters."""
    mixed = counters + key[0]
    mixed = (mixed ^ (mixed >> 16)) * _M1
    mixed = mixed ^ key[1]
    mixed = (mixed ^ (mixed >> 15)) * _M2
    return mixed ^ (mixed >> 16)


@compiled
def half_turn(words: Any) -> Any:
    """The same bits, the lower half first.

    Of two values that share a draw this gives the second one another: what decides is the upper
    half, and the lower half only where the upper one is equal.
    """
    return (words << 16) | (words >> 16)
