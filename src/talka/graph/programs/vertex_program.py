"""General programs: whole arrays of a partition, messages to any vertex, votes, changes of the graph.

An edge program (`program.py`) is shorter and faster where it will do.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import DTypeLike

from talka.errors import InvalidValueError
from talka.graph.programs.combining import COMBINES

if TYPE_CHECKING:
    from talka.graph.programs.step import Step

Combined = str | Callable[[Any, Any], Any]


class VertexProgram:
    """What a partition does in a superstep. Subclass it, and write `compute`.

    A vertex is active until it votes to halt, and again when a message reaches it. The program ends
    when nobody is active and no message is under way.

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
    """Values of every vertex, zero at first; the first column is the result unless named."""
    message_type: DTypeLike = np.float64
    """A numpy type; a structured one makes messages of several fields."""
    combine: str | None = None
    """"sum", "min" or "max": messages to one vertex become one on their way. None: all arrive."""
    aggregates: ClassVar[Mapping[str, Combined]] = {}
    """"sum", "min", "max", "any" or a function of two: numbers about all vertices."""
    indices: ClassVar[Mapping[str, Literal["num_own", "num_vertices"]]] = {}
    """Columns, fields of messages or "message" that `compute` takes as indices without a check, and
    what they are below. Values of a checkpoint are compared before `compute` sees them."""
    mutates = False
    """Whether it may add or remove vertices and edges."""
    num_supersteps: int | None = None
    python = False
    """Whether `compute` holds the interpreter's lock for long: it then runs in worker processes."""

    def compute(self, step: "Step") -> None:
        """One superstep of one partition. Pure: what it says and leaves depends on `step` alone."""
        raise NotImplementedError

    def master(self, superstep: int, aggregates: Mapping[str, Any]) -> Mapping[str, Any]:
        """Between supersteps, once for all: more names for `step.aggregates` of the next one."""
        return {}

    def until(self, aggregates: Mapping[str, Any]) -> bool:
        """Between supersteps: true ends the program."""
        return False


def check(program: VertexProgram) -> None:
    """Refuse what cannot run, before anything does."""
    if program.combine not in (None, "sum", "min", "max"):
        raise InvalidValueError("combine", program.combine, "sum, min, max or None")
    kind = np.dtype(program.message_type)
    if kind.hasobject or (program.combine is not None and kind.kind not in "biuf"):
        raise InvalidValueError("message_type", program.message_type, "a type of plain numbers")
    if not program.columns:
        raise InvalidValueError("columns", dict(program.columns), "at least one")
    for name, combine in program.aggregates.items():
        if not callable(combine) and combine not in COMBINES:
            allowed = f"one of {', '.join(COMBINES)}, or a function"
            raise InvalidValueError(f"the aggregate {name!r}", combine, allowed)
