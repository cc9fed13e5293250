"""Edge programs: messages along edges, a function that combines them, and an update per vertex.

The functions of a program are plain scalar Python. Each one receives what it names as a parameter:

    value, old          the value of the vertex; its value before the update
    vertex              the number of the vertex, 0 to num_vertices - 1
    out_degree, in_degree
    weight              the weight of the edge (`message` only)
    combined            all messages to the vertex, combined (`update` only)
    num_vertices
    superstep           from 0 on, the same number in `message`, in the `update` that receives the
                        messages and in the `active` after it; in an aggregate, the superstep of the
                        `update` that will read it
    any name in `parameters`, `attributes` or `aggregates`

All functions are compiled into kernels (`compiler.py`), so a program runs as fast as a loop written
by hand.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from talka.errors import InvalidValueError, ProgramError
from talka.graph.programs.combining import COMBINES
from talka.graph.programs.functions import Function, function_text
from talka.renaming import renamed_fields

Combine = Literal["sum", "min", "max", "any"]

_VERTEX: Final = {"value", "vertex", "out_degree", "in_degree", "num_vertices", "superstep"}
_PARAMETERS: Final = {
    "initial": _VERTEX - {"value", "superstep"},
    "starts": _VERTEX - {"superstep"},
    "message": _VERTEX | {"weight"},
    "update": _VERTEX | {"combined"},
    "active": _VERTEX | {"old"},
    "settled": _VERTEX,
}


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A number computed from all vertices: the combined results of `function`, called per vertex.

    `update` may take it as a parameter by name: in superstep s it sees the aggregate of the values
    after superstep s - 1.
    """

    function: Callable[..., Any]
    combine: Literal["sum", "min", "max"] = "sum"


@renamed_fields(nothing="identity", asynchronous_ok="order_independent")
@dataclass(frozen=True, slots=True, eq=False)
class EdgeProgram:
    """A program whose messages travel along edges and are combined on the way.

    Parameters
    ----------
    message
        `message(value, weight)`: the message that a vertex sends along each of its out-edges.
    combine
        How messages to the same vertex are combined: "sum", "min", "max", "any" (keep one of them;
        right if all are equal), or an associative and commutative function `combine(a, b)`.
    update
        `update(value, combined)`: the new value.
    initial
        The value before superstep 0.
    active
        `active(old, value)`: whether the vertex sends in the next superstep. With `active`, only
        vertices that received a message are updated, and the program ends when no vertex sends.
        Without it, all vertices send and are updated in every superstep.
    starts
        `starts(value)`: whether the vertex sends in superstep 0. By default all vertices do.
    settled
        `settled(value)`: whether the value is final. Messages to such a vertex may be dropped.
    value_type
        Numpy type of values.
    message_type
        Numpy type of messages; by default that of values.
    identity
        The identity element of `combine`, and the value of `combined` if there are no messages.
        Required if `combine` is a function, otherwise derived from it. A combined message equal to
        it counts as no message.
    parameters
        Numbers that functions may take by name.
    attributes
        Arrays with one entry per vertex number; functions may take the entry of a vertex by name.
    aggregates
        Numbers computed from all vertices; `update` may take them by name.
    until
        `until(aggregates)`: called after each superstep; true ends the program.
    order_independent
        Whether the result is the same in whatever order messages arrive, as for a minimum. A
        partition may then run several local rounds before it exchanges messages with others.
    num_supersteps
        Number of supersteps after which the program ends. Required without `active` and `until`.

    >>> EdgeProgram(
    ...     initial=lambda vertex, source: 0 if vertex == source else 2**31 - 1,
    ...     message=lambda value: value + 1,
    ...     combine="min",
    ...     update=lambda value, combined: min(value, combined),
    ...     active=lambda old, value: value < old,
    ...     starts=lambda value: value == 0,
    ...     value_type=np.int32,
    ...     parameters={"source": 5},
    ... ).is_weighted
    False
    """

    message: Callable[..., Any]
    combine: Combine | Callable[..., Any]
    update: Callable[..., Any]
    initial: Callable[..., Any]
    active: Callable[..., Any] | None = None
    starts: Callable[..., Any] | None = None
    settled: Callable[..., Any] | None = None
    value_type: DTypeLike = np.float64
    message_type: DTypeLike | None = None
    identity: float | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)
    attributes: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    aggregates: Mapping[str, Aggregate] = field(default_factory=dict)
    until: Callable[[Mapping[str, float]], bool] | None = None
    order_independent: bool = False
    num_supersteps: int | None = None
    functions: tuple[Function, ...] = field(init=False, repr=False)
    """Source text of all functions to compile."""

    def __post_init__(self) -> None:
        for name in ("value_type", "message_type"):
            requested = getattr(self, name)
            kind = np.dtype(self.value_type if requested is None else requested)
            if kind.kind not in "biuf" or kind.itemsize > 8:
                raise InvalidValueError(name, requested, "a numpy number type of at most 8 bytes")
            object.__setattr__(self, name, kind)
        if not callable(self.combine) and self.combine not in COMBINES:
            allowed = f"one of {', '.join(COMBINES)}, or a function of two messages"
            raise InvalidValueError("combine", self.combine, allowed)
        if callable(self.combine) and self.identity is None:
            allowed = (
                "a number if `combine` is a function: the message that leaves every other message"
                " unchanged when they are combined"
            )
            raise InvalidValueError("identity", None, allowed)
        if self.num_supersteps is not None and self.num_supersteps < 0:
            raise InvalidValueError("num_supersteps", self.num_supersteps, "0 or more")
        if not (self.active or self.until or self.num_supersteps is not None):
            allowed = "set if neither `active` nor `until` is: otherwise the program never ends"
            raise InvalidValueError("num_supersteps", None, allowed)
        object.__setattr__(self, "functions", tuple(self._functions()))
        self._check_names()

    @property
    def is_weighted(self) -> bool:
        """True if messages depend on the weights of edges."""
        [message] = [function for function in self.functions if function.name == "message"]
        return "weight" in message.parameters

    def _functions(self) -> Iterator[Function]:
        for name in _PARAMETERS:
            if (function := getattr(self, name)) is not None:
                yield function_text(function, name)
        if callable(self.combine):
            yield function_text(self.combine, "combine")
        for name, aggregate in self.aggregates.items():
            yield function_text(aggregate.function, f"aggregate_{name}")

    def _check_names(self) -> None:
        """Raise an error if a name is defined twice, or a function takes an unknown parameter."""
        defined = [*self.parameters, *self.attributes, *self.aggregates]
        reserved = _VERTEX | {"old", "weight", "combined"}
        for name in defined:
            if name in reserved or defined.count(name) > 1 or not name.isidentifier():
                allowed = f"an identifier, used once, other than {', '.join(sorted(reserved))}"
                raise InvalidValueError(
                    "a name in parameters, attributes or aggregates", name, allowed
                )
        for function in self.functions:
            if function.name == "combine":
                if len(function.parameters) != 2:
                    problem = (
                        "it must take two parameters, the messages to combine, but takes"
                        f" {len(function.parameters)}"
                    )
                    raise ProgramError("combine", function.where, problem)
                continue
            allowed_names = _PARAMETERS.get(function.name, _VERTEX | {"old"}).union(
                self.parameters, self.attributes
            )
            if function.name == "update":
                allowed_names = allowed_names.union(self.aggregates)
            for name in function.parameters:
                if name not in allowed_names:
                    problem = (
                        f"it cannot take a parameter {name!r}; it may take"
                        f" {', '.join(sorted(allowed_names))}"
                    )
                    raise ProgramError(function.name, function.where, problem)
