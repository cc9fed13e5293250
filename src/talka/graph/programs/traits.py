"""The attributes of a vertex program that steps and changes of the graph read.

`VertexProgram.compute` takes a `Step`, and a `Step` needs to know these of its program: an interface
below both keeps their modules free of a cycle.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from numpy.typing import DTypeLike


class ProgramTraits(Protocol):
    """What a step knows about the program that it belongs to; see `VertexProgram` for meanings."""

    @property
    def message_type(self) -> DTypeLike: ...

    @property
    def combine(self) -> str | None: ...

    @property
    def aggregates(self) -> Mapping[str, str | Callable[[Any, Any], Any]]: ...

    @property
    def mutates(self) -> bool: ...
