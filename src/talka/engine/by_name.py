"""Engines by their names on the command line: `embedded`, `ray`, `ray://HOST:PORT`."""

from talka.engine import Embedded, Engine
from talka.errors import OptionError, did_you_mean
from talka.events import Stream

_SCHEME = "ray://"
_NAMES = ("embedded", "ray")
_EXAMPLE = "ray://10.0.0.5:6379"


def check_engine(name: str) -> None:
    """Raise OptionError if this is not the name of an engine.

    >>> check_engine("ray://head:6379")
    """
    if name in _NAMES:
        return
    if not name.startswith(_SCHEME):
        hint = did_you_mean(name, _NAMES) or " Choose one of these."
        problem = f"is {name!r}, but must be embedded, ray or an address such as {_EXAMPLE}"
        raise OptionError("engine", problem, hint.strip())
    host, _, port = name.removeprefix(_SCHEME).rpartition(":")
    if not host or not port.isdecimal():
        problem = f"is {name!r}, which has no address of a Ray cluster after {_SCHEME}"
        if name.removeprefix(_SCHEME) == "HOST:PORT":
            problem = f"is {name!r}, but HOST:PORT stands for the address of a Ray cluster"
        advice = f"Give a host and the number of its port, such as {_EXAMPLE}, or `ray` alone."
        raise OptionError("engine", problem, advice)


def engine_by_name(name: str, events: Stream) -> Engine:
    """Make the engine of this name; the caller must close it.

    `ray` starts a Ray cluster on this machine, which ends with the engine.
    """
    if name == "embedded":
        return Embedded(events=events)
    from talka.engine import OnRay

    return OnRay(None if name == "ray" else name, events=events)
