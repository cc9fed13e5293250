"""Where partitions lie: topology is brought to a place once, and supersteps run near it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.engine import Embedded, Engine, Ref
from talka.graph.partitions.partition import Partition
from talka.graph.supersteps.protocol import as_saved


class Placed(NamedTuple):
    """One partition and the arrays beside it, as inputs of tasks."""

    partition: Partition | Ref
    arrays: tuple[Any, ...]
    """What tasks take beside it: arrays, or refs of them."""
    near: Ref | None
    python: bool
    """Tasks run in worker processes."""


def place(
    engine: Engine,
    partitions: Sequence[Partition],
    arrays: Sequence[Sequence[Any]],
    *,
    python: bool,
) -> list[Placed]:
    """Bring partitions to the engine, each by one task: all of it then lies on one machine."""
    placed = []
    for partition, beside in zip(partitions, arrays, strict=True):
        if isinstance(engine, Embedded) and not python:
            # threads share memory as it is
            placed.append(Placed(partition, tuple(beside), None, python))
            continue
        brought = (partition.to_blob(), *beside)
        refs = engine.submit(as_saved, *brought, num_outputs=len(brought), name="place")
        placed.append(Placed(refs[0], tuple(refs[1:]), refs[0], python))
    return placed


def by_slots(
    partitions: Sequence[Partition], arrays: Sequence[NDArray[Any]]
) -> list[list[NDArray[Any]]]:
    """For each partition the numbers of its source slots, and the entries that `arrays` have there."""
    if len(partitions) == 1:
        return [[partitions[0].own, *arrays]]  # slots are numbers then
    slots = [partition.source_numbers for partition in partitions]
    return [[each, *(np.ascontiguousarray(array[each]) for array in arrays)] for each in slots]


def release(engine: Engine, placed: Sequence[Placed]) -> None:
    for place in placed:
        engine.release([x for x in (place.partition, *place.arrays) if isinstance(x, Ref)])
