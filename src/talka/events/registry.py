"""The kinds of events, by name. Each pillar registers its own, and so can code outside of talka.

    @register
    @dataclass(frozen=True, slots=True)
    class StepDone(Event): ...

This module imports no pillar. A reader that meets a kind that is not registered yet imports the
modules in `MODULES`, which are cheap: no pillar's events need its libraries.
"""

import dataclasses
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, TypeVar, get_type_hints

from talka.errors import OptionError
from talka.events.fields import Allowed, allowed_by

MODULES: Final = (
    "talka.channels.events",
    "talka.engine.events",
    "talka.train.events",
    "talka.graph.events",
    "talka.lab.events",
)
"""Modules with the events of the pillars of talka."""


@dataclass(frozen=True, slots=True)
class Event:
    """Base class of all events: frozen dataclasses of plain values."""

    FORMER_NAMES: ClassVar[Mapping[str, str]] = {}
    """Current name of each field that earlier versions wrote under another name."""
    IS_PROGRESS: ClassVar[bool] = False
    """True if events of rank 0 of a gang reach the listeners of its driver; the standard progress events
    do anyway."""


class Kind(NamedTuple):
    """A registered kind of events, prepared for reading."""

    type: type[Event]
    fields: tuple[tuple[str, Allowed], ...]
    """Names of the fields, and the values that each may have."""


_kinds: dict[str, Kind] = {}
_loaded: list[str] = []
_Type = TypeVar("_Type", bound=type[Event])


def register(kind: _Type) -> _Type:
    """Make a class known to readers by its name; a decorator.

    Raises OptionError if another class has the name, or if a field cannot be read back from JSON.
    """
    name = kind.__name__
    known = _kinds.get(name)
    if known is not None and _home(known.type) != _home(kind):
        problem = f"has the name of another event, {_home(known.type)}"
        raise OptionError(f"the event {_home(kind)}", problem, "Give it another name.")
    hints = get_type_hints(kind)
    fields = tuple(_field(kind, field, hints) for field in dataclasses.fields(kind))
    _kinds[name] = Kind(kind, fields)
    return kind


def find(name: str) -> Kind | None:
    """Return the kind with this name; None if it is not registered."""
    kind = _kinds.get(name)
    if kind is None and not _loaded:
        _load()
        kind = _kinds.get(name)
    return kind


def registered() -> dict[str, type[Event]]:
    """Return all registered classes, by name."""
    _load()
    return {name: kind.type for name, kind in _kinds.items()}


def pillar_of(kind: type[Event]) -> str:
    """Return the part of talka that an event belongs to, such as `train`.

    It is empty for events that every run has, and for a class outside of talka its package.
    """
    package, _, rest = kind.__module__.partition(".")
    pillar = rest.partition(".")[0] if package == "talka" else package
    return "" if pillar == "events" else pillar


def _load() -> None:
    if not _loaded:
        for module in MODULES:
            importlib.import_module(module)
            _loaded.append(module)


def _home(kind: type[Event]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _field(
    kind: type[Event], field: "dataclasses.Field[Any]", hints: Mapping[str, Any]
) -> tuple[str, Allowed]:
    allowed = allowed_by(hints[field.name])
    if allowed is None:
        raise OptionError(
            f"the field {field.name!r} of the event {_home(kind)}",
            f"has the type {field.type}",
            "Use str, int, float, bool, None, a Literal of texts, or a union of these.",
        )
    return field.name, allowed
