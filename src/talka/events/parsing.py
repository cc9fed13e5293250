"""One line of an event file as an event.

Files may be damaged or forged, so every field is checked: numbers are small enough to be summed and
plotted, and texts can be encoded as UTF-8.
"""

import json
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from talka.events.fields import MAX_TIME_S, checked, fits, printable
from talka.events.registry import Event, Kind, find

MAX_LINE_BYTES: Final = 1 << 24
_MAX_KIND_CHARACTERS: Final = 200
Problem = Literal["cut", "damaged"]
"""Why a line is not an event: cut off at the end of a file, or damaged."""


@dataclass(frozen=True, slots=True)
class Unknown(Event):
    """An event of a kind that is not registered, such as one from a newer version."""

    kind: str
    """Name of the class of the event where it was written."""
    fields: dict[str, Any]
    """The other values of its line, without the time. Lists and objects can be among them."""


class Stamped(NamedTuple):
    """An event with the time at which it was written and its writer (`driver`, `rank-3`)."""

    time_s: float
    source: str
    event: Event


def parsed(line: bytes, source: str) -> Stamped | Problem:
    """Return the event of a line, or why there is none."""
    try:
        fields = _DECODER.decode(line.decode("utf-8", "replace"))
        kind = find(fields["event"])
        time_s = fields["time_s"]
        if type(time_s) not in (int, float) or not 0 <= time_s <= MAX_TIME_S:
            return "damaged"
        event = _unknown(fields) if kind is None else _decoded(kind, fields)
        return "damaged" if event is None else Stamped(float(time_s), source, event)
    except (ValueError, LookupError, TypeError, RecursionError):
        return "damaged"


def _decoded(kind: Kind, fields: dict[str, Any]) -> Event | None:
    """Return the event; None if a field has a value that is not allowed."""
    for former, name in kind.type.FORMER_NAMES.items():
        if former in fields:
            fields.setdefault(name, fields[former])
    values = {}
    for name, allowed in kind.fields:
        if name in fields:
            value = fields[name]
            if not fits(value, allowed):
                return None
            values[name] = printable(value) if type(value) is str else value
    return kind.type(**values)


def _unknown(fields: dict[str, Any]) -> Unknown | None:
    name = fields["event"]
    if not isinstance(name, str) or not 0 < len(name) <= _MAX_KIND_CHARACTERS:
        return None
    others = {key: value for key, value in fields.items() if key not in ("event", "time_s")}
    return Unknown(printable(name), checked(others))


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse)  # making one takes as long as a line
