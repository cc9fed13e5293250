"""Edge programs: what travels along an edge, how it is combined, what a vertex makes of it.

Functions are plain scalar Python. Each names what it wants among:

    value, old          the value of this vertex; before the update
    vertex              its number, 0 to num_vertices - 1
    out_degree, in_degree
    weight              of the edge (`message` alone)
    combined            all messages (`update` alone)
    num_vertices
    superstep           the same number in `message`, in the `update` that receives the messages and
                        in `active` after it, from 0 on; in an aggregate, that of the `update` that
                        will see it
    any name in `parameters`, `attributes` or `aggregates`

All of them are compiled into kernels (`compiler.py`), so a program is as fast as a loop by hand.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from talka.errors import InvalidValueError, ProgramError
from talka.graph.programs.functions import Function, function_text

Combine = Literal["sum", "min", "max", "any"]
COMBINES: Final = ("sum", "min", "max", "any")

_VERTEX: Final = {"value", "vertex", "out_degree", "in_degree", "num_vertices", "superstep"}
_WANTS: Final = {
    "initial": _VERTEX - {"value", "superstep"},
    "starts": _VERTEX - {"superstep"},
    "message": _VERTEX | {"weight"},
    "update": _VERTEX | {"combined"},
    "active": _VERTEX | {"old"},
    "settled": _VERTEX,
}


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A number about all vertices: `function` of each, combined; `update` may ask for it by name.

    What `update` sees in superstep s was made of the values after superstep s - 1.
    """

    function: Callable[..., Any]
    combine: Literal["sum", "min", "max"] = "sum"


@dataclass(frozen=True, slots=True, eq=False)
class EdgeProgram:
    """A vertex program in which messages go along edges and are combined on their way.

    Parameters
    ----------
    message
        What a vertex says along each of its out-edges: `message(value, weight)`.
    combine
        How messages to one vertex become one: "sum", "min", "max", "any" (take one of them: they
        are all the same), or a function `combine(a, b)` that is associative and commutative.
    update
        The new value: `update(value, combined)`.
    initial
        The value before superstep 0.
    active
        `active(old, value)`: does the vertex speak in the next superstep? Without it all speak
        always, and every vertex is updated in every superstep. With it only vertices that got a
        message are updated, and the program ends when nobody speaks.
    starts
        `starts(value)`: does the vertex speak in superstep 0? All do unless given.
    settled
        `settled(value)`: the value is final, messages to it may be dropped.
    nothing
        What `combined` is without a message: needed for a function, else known. A combined message
        equal to it is no message.
    parameters
        Numbers that functions may ask for by name.
    attributes
        Arrays with an entry for each vertex number, likewise.
    aggregates
        Numbers about all vertices, likewise.
    until
        `until(aggregates)` after each superstep: true ends the program.
    asynchronous_ok
        A partition may go on with its own vertices before it hears from the others: right for
        programs whose end does not depend on the order of messages, such as a minimum.

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
    nothing: float | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)
    attributes: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    aggregates: Mapping[str, Aggregate] = field(default_factory=dict)
    until: Callable[[Mapping[str, float]], bool] | None = None
    asynchronous_ok: bool = False
    num_supersteps: int | None = None
    """Ends after so many supersteps; needed where nothing else ends it."""
    functions: tuple[Function, ...] = field(init=False, repr=False)
    """All functions that are compiled, as text."""

    def __post_init__(self) -> None:
        for name in ("value_type", "message_type"):
            given = getattr(self, name)
            kind = np.dtype(self.value_type if given is None else given)
            if kind.kind not in "biuf" or kind.itemsize > 8:
                raise InvalidValueError(name, given, "a numpy type of numbers of at most 8 bytes")
            object.__setattr__(self, name, kind)
        if not callable(self.combine) and self.combine not in COMBINES:
            allowed = f"one of {', '.join(COMBINES)}, or a function of two messages"
            raise InvalidValueError("combine", self.combine, allowed)
        if callable(self.combine) and self.nothing is None:
            allowed = "given where `combine` is a function: the message that changes nothing"
            raise InvalidValueError("nothing", None, allowed)
        if self.num_supersteps is not None and self.num_supersteps < 0:
            raise InvalidValueError("num_supersteps", self.num_supersteps, "0 or more")
        if not (self.active or self.until or self.num_supersteps is not None):
            allowed = "given, or `active`, or `until`: else the program never ends"
            raise InvalidValueError("num_supersteps", None, allowed)
        object.__setattr__(self, "functions", tuple(self._functions()))
        self._check_names()

    @property
    def is_weighted(self) -> bool:
        """Whether messages depend on weights."""
        [message] = [function for function in self.functions if function.name == "message"]
        return "weight" in message.parameters

    def _functions(self) -> Iterator[Function]:
        for name in _WANTS:
            if (function := getattr(self, name)) is not None:
                yield function_text(function, name)
        if callable(self.combine):
            yield function_text(self.combine, "combine")
        for name, aggregate in self.aggregates.items():
            yield function_text(aggregate.function, f"aggregate_{name}")

    def _check_names(self) -> None:
        own = [*self.parameters, *self.attributes, *self.aggregates]
        taken = _VERTEX | {"old", "weight", "combined"}
        for name in own:
            if name in taken or own.count(name) > 1 or not name.isidentifier():
                raise InvalidValueError("a name of the program", name, "one that is not taken")
        for function in self.functions:
            if function.name == "combine":
                if len(function.parameters) != 2:
                    raise ProgramError("combine", function.where, "it must take two messages")
                continue
            allowed = _WANTS.get(function.name, _VERTEX | {"old"}) | set(self.parameters)
            allowed = allowed | set(self.attributes)
            if function.name == "update":
                allowed = allowed | set(self.aggregates)
            for wanted in function.parameters:
                if wanted not in allowed:
                    problem = f"it asks for {wanted!r}; known are {', '.join(sorted(allowed))}"
                    raise ProgramError(function.name, function.where, problem)
