"""The grammar of short forms such as `topk:0.01+ef`, and the names of all compressors.

    name[:argument[/argument...]][+ef]

This module needs neither torch nor a compressor, so a misspelt name is reported at once.
"""

import difflib
import math
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from talka.errors import InvalidValueError, SpecError

LOW_RANK: Final = "powersgd"
"""Name of the exchange with the short form `powersgd:R`; it is not a compressor."""
_NUMBER: Final = r"[\d.]+(e-?\d+)?"
_ARGUMENTS: Final = {
    "none": "",
    "fp16": "",
    "bf16": "",
    "trunc16": "",
    "onebit": r"(\d+|all)?",
    "uniform": r"\d+(/\w+)*",
    "qsgd": r"\d+(/\w+)*",
    "terngrad": "",
    "topk": _NUMBER,
    "randomk": _NUMBER,
    "threshold": rf"(auto|{_NUMBER})(/{_NUMBER})?",
    "significance": _NUMBER,
    LOW_RANK: r"\d+",
}
"""Rough patterns of the arguments of each name: enough to suggest nothing that is clearly wrong."""
NAMES: Final = tuple(name for name in _ARGUMENTS if name != LOW_RANK)
"""Names of all compressors of talka."""
_ADDED: Final[dict[str, str]] = {}
"""Names that `talka.compress.register` added, with the pattern of any arguments."""


def known_names() -> tuple[str, ...]:
    """Return the names of all compressors, with those that were registered."""
    return (*NAMES, *_ADDED)


def add_name(name: str) -> None:
    """Add the name of a compressor outside of talka. Raise InvalidValueError if it cannot be."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name == "ef":
        allowed = "lower-case letters, digits and underscores that begin with a letter, not 'ef'"
        raise InvalidValueError("name of the compressor", name, allowed)
    if name in _ARGUMENTS or name in _ADDED:
        raise InvalidValueError("name of the compressor", name, "one that is not taken")
    _ADDED[name] = ".*"


class ShortForm(NamedTuple):
    """The parts of a short form."""

    name: str
    arguments: list[str]
    has_feedback: bool


def parsed(spec: str) -> ShortForm:
    """Split a short form into its parts; the compressor checks the arguments.

    >>> parsed("uniform:3/max/512+ef")
    ShortForm(name='uniform', arguments=['3', 'max', '512'], has_feedback=True)
    >>> parsed("trunk16")
    Traceback (most recent call last):
    talka.errors.payloads.SpecError: 'trunk16' does not name a compressor; allowed is 'trunc16', the nearest.
    """
    head, plus, rest = spec.partition("+")
    name, colon, text = head.partition(":")
    arguments = text.split("/") if colon else []
    if "ef" in arguments:
        kept = "/".join(argument for argument in arguments if argument != "ef")
        mended = f"{name}:{kept}+ef" if kept else f"{name}+ef"
        raise SpecError(spec, "has 'ef' among its arguments", repr(mended))
    if name not in (*known_names(), LOW_RANK) or plus + rest not in ("", "+ef") or "" in arguments:
        raise SpecError(spec, "does not name a compressor", _allowed(spec))
    return ShortForm(name, arguments, has_feedback=bool(plus))


def _allowed(spec: str) -> str:
    """Return the nearest short form, or the grammar and all names."""
    for name, arguments, feedback in _guesses(spec):
        if re.fullmatch((_ARGUMENTS | _ADDED)[name], arguments):
            return repr(name + (f":{arguments}" if arguments else "") + feedback) + ", the nearest"
    return f"name[:argument[/argument...]][+ef] with a name of {', '.join(known_names())}"


def _guesses(spec: str) -> Iterator[tuple[str, str, str]]:
    """Yield name, arguments and feedback of short forms that may be meant, most likely first."""
    head, plus, _ = re.sub(r"\s", "", spec.lower()).partition("+")
    name, _, rest = head.partition(":")
    guesses = [(name, rest)]
    if glued := re.fullmatch(r"([a-z]+)(\d.*)", head):
        guesses.append((glued[1], glued[2]))
    for name, rest in guesses:
        for near in difflib.get_close_matches(re.sub(r"[-_.]", "", name), [*_ARGUMENTS, *_ADDED]):
            yield near, rest, "+ef" if plus else ""


def number_in(text: str) -> float | None:
    """Return the finite number in a text, or None.

    >>> number_in("0.01"), number_in("1e-3"), number_in("nan"), number_in("many")
    (0.01, 0.001, None, None)
    """
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def short_number(value: float) -> str:
    """Return the shortest text that reads as this number.

    >>> short_number(1.0), short_number(0.001)
    ('1', '0.001')
    """
    return repr(float(value)).removesuffix(".0")


def share_of(name: str, arguments: list[str]) -> float:
    """Return the only argument of a compressor that keeps a share of the values."""
    value = number_in(arguments[0]) if len(arguments) == 1 else None
    if value is None or not 0 < value <= 1:
        raise SpecError(
            ":".join([name, "/".join(arguments)]).removesuffix(":"),
            "does not give the share of the values to keep",
            f"one number above 0 and up to 1: {name}:0.01",
        )
    return value
