"""Indices that are spread over a vector: one drawn in each of equal strides.

Ascending, distinct, and the same wherever the key is the same, so they need not travel. The first
`num_values % count` strides are one longer than the others.
"""

from typing import Any

import numpy as np

from talka.compiled import compiled
from talka.compress.bits.select import Floats, Indices


def one_in_each(num_values: int, count: int, key: int) -> Indices:
    """`count` indices below `num_values`; the 64 bits of `key` say which."""
    indices = np.empty(count, np.uint32)
    if count:
        length, num_longer = stride_lengths(num_values, count)
        _one_in_each(np.uint64(key), np.uint64(length), num_longer, indices)
    return indices


def sample(values: Floats, residual: Floats | None, count: int, key: int) -> Floats:
    """Values (with a residual: sums) at such indices."""
    found = np.empty(count, np.float32)
    _gather(values, residual, one_in_each(len(values), count, key), found)
    return found


def stride_lengths(num_values: int, count: int) -> tuple[int, int]:
    """The length of most strides, and how many at the beginning are one longer.

    >>> stride_lengths(11, 4)
    (2, 3)
    """
    return divmod(num_values, count)


@compiled
def _one_in_each(key: Any, length: Any, num_longer: int, indices: Any) -> None:
    start = np.uint64(0)
    for place in range(len(indices)):
        here = np.uint64(length + np.uint64(place < num_longer))
        draw = np.uint64(_hash(np.uint64(key + np.uint64(place))) >> np.uint64(32))
        indices[place] = np.uint32(start + np.uint64(np.uint64(draw * here) >> np.uint64(32)))
        start = np.uint64(start + here)


@compiled
def _hash(counter: Any) -> Any:
    """The finalizer of splitmix64 on a Weyl sequence: two multiplications, all bits mixed."""
    mixed = np.uint64(counter * np.uint64(0x9E3779B97F4A7C15))
    mixed = np.uint64((mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9))
    mixed = np.uint64((mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB))
    return np.uint64(mixed ^ (mixed >> np.uint64(31)))


@compiled
def _gather(values: Any, residual: Any, indices: Any, found: Any) -> None:
    for at in range(len(indices)):
        index = indices[at]
        if residual is None:
            found[at] = values[index]
        else:
            found[at] = np.float32(values[index] + residual[index])
