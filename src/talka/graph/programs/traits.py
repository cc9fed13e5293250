"""The attributes of a vertex program that steps and changes of the graph read.

`VertexProgram.compute` takes a `Step`, and a `Step` reads these attributes of its program. With an
interface below both, their modules need not import each other.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from numpy.typing import DTypeLike


class ProgramTraits(Protocol):
    """The attributes of a `VertexProgram` that its steps read; documented there."""

    @property
    def message_type(self) -> DTypeLike: ...

    @property
    def combine(self) -> str | None: ...

    @property
    def aggregates(self) -> Mapping[str, str | Callable[[Any, Any], Any]]: ...

    @property
    def mutates(self) -> bool: ...
