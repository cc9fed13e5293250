"""Where partitions lie: topology is brought to a place once, and supersteps run near it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.engine import Embedded, Engine, Ref
from talka.graph.part import Part


class Placed(NamedTuple):
    """One partition and the arrays beside it, as inputs of tasks."""

    part: Part | Ref
    arrays: tuple[NDArray[Any] | Ref, ...]
    """An entry for each source slot: numbers, out- and in-degrees, attributes."""
    near: Ref | None
    python: bool
    """Tasks run in worker processes."""


def place(
    engine: Engine, parts: Sequence[Part], arrays: Sequence[NDArray[Any]], *, python: bool
) -> list[Placed]:
    """Bring partitions to the engine; `arrays` have an entry for each vertex number."""
    placed = []
    for part in parts:
        slots = np.concatenate([part.own, part.source_mirrors])
        of_slots = (slots, *(np.ascontiguousarray(array[slots]) for array in arrays))
        if isinstance(engine, Embedded) and not python:
            placed.append(Placed(part, of_slots, None, python))  # threads share memory as it is
            continue
        refs = [
            engine.submit(_brought, blob, name="place")[0] for blob in (part.to_blob(), *of_slots)
        ]
        placed.append(Placed(refs[0], tuple(refs[1:]), refs[0], python))
    return placed


def release(engine: Engine, placed: Sequence[Placed]) -> None:
    for place in placed:
        engine.release([x for x in (place.part, *place.arrays) if isinstance(x, Ref)])


def _brought(array: NDArray[Any]) -> NDArray[Any]:
    return array
