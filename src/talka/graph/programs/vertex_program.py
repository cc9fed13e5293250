"""General programs: array code per partition, messages to any vertex, votes to halt, mutations.

An edge program (`edge_program.py`) is shorter and faster if it can express the algorithm.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import DTypeLike

from talka.errors import InvalidValueError
from talka.graph.programs.combining import COMBINES
from talka.graph.programs.step import Step

Combined = str | Callable[[Any, Any], Any]


class VertexProgram:
    """Base class of general programs; `compute` runs once per partition and superstep.

    A vertex is active until it votes to halt, and becomes active again when a message reaches it.
    The program ends when no vertex is active and no message is in transit.

    >>> class Largest(VertexProgram):
    ...     columns: ClassVar = {"value": np.int64}
    ...     combine = "max"
    ...     message_type = np.int64
    ...
    ...     def compute(self, step):
    ...         if step.superstep == 0:
    ...             step["value"] = step.vertices
    ...             step.send_along_edges(step["value"])
    ...         else:
    ...             larger = step.combined > step["value"]
    ...             step["value"] = np.maximum(step["value"], step.combined)
    ...             step.send_along_edges(step["value"], where=larger)
    ...         step.vote_to_halt()
    """

    columns: ClassVar[Mapping[str, DTypeLike]] = {"value": np.float64}
    """Names and types of the values of a vertex, 0 at first; the first is `Outcome.values`."""
    message_type: DTypeLike = np.float64
    """Numpy type of messages; with a structured type messages have several fields."""
    combine: str | None = None
    """"sum", "min" or "max": combine messages to the same vertex on the way. None: deliver all."""
    aggregates: ClassVar[Mapping[str, Combined]] = {}
    """Names of numbers about all vertices, each with how values are combined: "sum", "min", "max",
    "any" or a function of two values."""
    indices: ClassVar[Mapping[str, Literal["num_own", "num_vertices"]]] = {}
    """Columns, fields of messages or "message" that `compute` uses as indices without a check, each
    with its upper bound. Values from a checkpoint are checked before `compute` sees them."""
    mutates = False
    """True if the program may add or remove vertices and edges."""
    num_supersteps: int | None = None
    """Number of supersteps after which the program ends; None if it ends by itself."""
    python = False
    """True if `compute` holds the interpreter lock for long: it then runs in worker processes."""

    def compute(self, step: Step) -> None:
        """Run one superstep of one partition. Results must depend on `step` alone."""
        raise NotImplementedError

    def master(self, superstep: int, aggregates: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return more entries for `step.aggregates` of the next superstep.

        Called between supersteps, once for all partitions.
        """
        return {}

    def until(self, aggregates: Mapping[str, Any]) -> bool:
        """Return True to end the program. Called between supersteps."""
        return False


def check(program: VertexProgram) -> None:
    """Raise `InvalidValueError` if a program cannot run."""
    if program.combine not in (None, "sum", "min", "max"):
        raise InvalidValueError("combine", program.combine, "sum, min, max or None")
    kind = np.dtype(program.message_type)
    if kind.hasobject or (program.combine is not None and kind.kind not in "biuf"):
        allowed = "a numpy number type, or a structured one without `combine`"
        raise InvalidValueError("message_type", program.message_type, allowed)
    if not program.columns:
        raise InvalidValueError(
            "columns", dict(program.columns), "a mapping with at least one column"
        )
    for name, combine in program.aggregates.items():
        if not callable(combine) and combine not in COMBINES:
            allowed = f"one of {', '.join(COMBINES)}, or a function of two values"
            raise InvalidValueError(f"the aggregate {name!r}", combine, allowed)
