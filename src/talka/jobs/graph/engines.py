"""Engines by the names of the command line."""

from talka.engine import Embedded, Engine
from talka.errors import InvalidValueError
from talka.events import Stream

_SCHEME = "ray://"


def check_engine(name: str) -> None:
    """Refuse a name before anything starts.

    >>> check_engine("ray://head:6379")
    """
    host, _, port = name.removeprefix(_SCHEME).rpartition(":")
    is_address = name.startswith(_SCHEME) and bool(host) and port.isdecimal()
    if name not in ("embedded", "ray") and not is_address:
        raise InvalidValueError("engine", name, "embedded, ray or ray://HOST:PORT")


def engine_by_name(name: str, events: Stream) -> Engine:
    """`ray` starts a Ray of our own on this machine; the caller closes the engine."""
    if name == "embedded":
        return Embedded(events=events)
    from talka.engine import OnRay

    return OnRay(None if name == "ray" else name, events=events)
