"""A hash table that numbers 64-bit ids in the order of their first occurrence.

Open addressing with linear probing. A slot has 16 bytes: the id, and its number plus one, which is
0 in an empty slot.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.compiled import compiled

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_HALF, _ONE = np.uint64(32), np.uint64(1)


class IdTable(NamedTuple):
    """Ids and their numbers."""

    slots: NDArray[np.uint64]
    """Rows of (id, number + 1): a power of two of them, at most half of them used."""
    known: NDArray[np.uint64]
    """Ids in the order of their numbers; half as long as `slots`."""
    num_known: NDArray[np.int64]
    """Number of ids: an array with one entry, because kernels change it."""


def number_ids(ids: NDArray[np.uint64], numbers: NDArray[np.uint32], table: IdTable) -> IdTable:
    """Write the number of each id, and return the table: a larger one if it had to grow."""
    done = 0
    while (done := enter_ids(ids, done, numbers, table)) < len(ids):
        table = _twice(table)
    return table


def empty_table(num_slots: int = 1 << 16) -> IdTable:
    """Return a table without ids; `num_slots` must be a power of two."""
    return IdTable(
        np.zeros((num_slots, 2), np.uint64),
        np.empty(num_slots // 2, np.uint64),
        np.zeros(1, np.int64),
    )


def _twice(table: IdTable) -> IdTable:
    larger = empty_table(2 * len(table.slots))
    known = table.known[: table.num_known[0]]
    enter_ids(known, 0, np.empty(len(known), np.uint32), larger)
    return larger


@compiled
def enter_ids(ids: Any, done: Any, numbers: Any, table: Any) -> Any:
    """Number ids from `done` on; return how many are done, fewer than all if the table is full."""
    slots, known = table.slots, table.known
    mask = np.uint64(len(slots) - 1)
    num_known = table.num_known[0]
    for index in range(done, len(ids)):
        new_id = ids[index]
        mixed = (new_id ^ new_id >> _HALF) * _FACTOR
        slot = (mixed ^ mixed >> _HALF) & mask
        while slots[slot, 1] != 0 and slots[slot, 0] != new_id:
            slot = (slot + _ONE) & mask
        if slots[slot, 1] == 0:
            if num_known == len(known):
                table.num_known[0] = num_known
                return index
            known[num_known] = new_id
            num_known += 1
            slots[slot, 0] = new_id
            slots[slot, 1] = np.uint64(num_known)
        numbers[index] = np.uint32(slots[slot, 1] - _ONE)
    table.num_known[0] = num_known
    return len(ids)


@compiled
def replace_numbers(numbers: Any, by: Any) -> None:
    """Replace each number n by `by[n]`, in place."""
    for index in range(len(numbers)):
        numbers[index] = by[numbers[index]]
