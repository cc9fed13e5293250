"""Random indices spread over a vector: one drawn in each of `count` equal strides.

They are ascending, distinct and the same for the same key, so they need not be sent. The first
`num_values % count` strides are one longer than the others.
"""

from typing import Any

import numpy as np

from talka.compiled import compiled
from talka.compress.bits.select import Floats, Indices


def one_in_each(num_values: int, count: int, key: int) -> Indices:
    """Return `count` indices below `num_values`, determined by the 64 bits of `key`."""
    indices = np.empty(count, np.uint32)
    if count:
        length, num_longer = stride_lengths(num_values, count)
        _one_in_each(np.uint64(key), np.uint64(length), num_longer, indices)
    return indices


def sample(values: Floats, residual: Floats | None, count: int, key: int) -> Floats:
    """Return values (plus the residual, if any) at the indices of `one_in_each`."""
    sampled = np.empty(count, np.float32)
    _gather(values, residual, one_in_each(len(values), count, key), sampled)
    return sampled


def stride_lengths(num_values: int, count: int) -> tuple[int, int]:
    """Return the length of most strides, and how many at the start are one longer.

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
    """Hash a counter with splitmix64's finalizer on a Weyl sequence."""
    mixed = np.uint64(counter * np.uint64(0x9E3779B97F4A7C15))
    mixed = np.uint64((mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9))
    mixed = np.uint64((mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB))
    return np.uint64(mixed ^ (mixed >> np.uint64(31)))


@compiled
def _gather(values: Any, residual: Any, indices: Any, gathered: Any) -> None:
    for at in range(len(indices)):
        index = indices[at]
        if residual is None:
            gathered[at] = values[index]
        else:
            gathered[at] = np.float32(values[index] + residual[index])
