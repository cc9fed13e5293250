"""Placement of partitions: edges are sent to a worker once, and supersteps run near them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.engine import Embedded, Engine, Ref
from talka.graph.partitions.partition import Partition
from talka.graph.supersteps.protocol import as_saved


class Placed(NamedTuple):
    """A partition and its arrays, as inputs of tasks."""

    partition: Partition | Ref
    arrays: tuple[Any, ...]
    """Further inputs of tasks: arrays, or refs of arrays."""
    near: Ref | None
    """Output that tasks should run close to; None: anywhere."""
    python: bool
    """True if tasks run in worker processes."""


def place(
    engine: Engine,
    partitions: Sequence[Partition],
    arrays: Sequence[Sequence[Any]],
    *,
    python: bool,
) -> list[Placed]:
    """Place partitions on the engine, each by one task, so that all of it is on one machine."""
    placed = []
    for partition, own_arrays in zip(partitions, arrays, strict=True):
        if isinstance(engine, Embedded) and not python:
            # Threads share memory: nothing is copied.
            placed.append(Placed(partition, tuple(own_arrays), None, python))
            continue
        inputs = (partition.to_blob(), *own_arrays)
        refs = engine.submit(as_saved, *inputs, num_outputs=len(inputs), name="place")
        placed.append(Placed(refs[0], tuple(refs[1:]), refs[0], python))
    return placed


def by_slots(
    partitions: Sequence[Partition], arrays: Sequence[NDArray[Any]]
) -> list[list[NDArray[Any]]]:
    """Return for each partition the numbers of its source slots, and `arrays` at these numbers."""
    if len(partitions) == 1:
        return [[partitions[0].own, *arrays]]  # slots equal vertex numbers
    slots = [partition.source_numbers for partition in partitions]
    return [
        [numbers, *(np.ascontiguousarray(array[numbers]) for array in arrays)] for numbers in slots
    ]


def release(engine: Engine, placed: Sequence[Placed]) -> None:
    for place in placed:
        engine.release([x for x in (place.partition, *place.arrays) if isinstance(x, Ref)])
