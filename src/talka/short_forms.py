"""The grammar of short forms such as `topk:0.01+ef`, and all names that they can have.

    name[:argument[/argument...]][+ef]

This needs neither torch nor a compressor, so a misspelt name is reported at once.
"""

import difflib
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from talka.errors import SpecError

LOW_RANK: Final = "powersgd"
"""Not a compressor but an exchange of its own; its short form is `powersgd:R`."""
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
"""Roughly what follows each name: enough to offer nothing that is clearly wrong."""
NAMES: Final = tuple(name for name in _ARGUMENTS if name != LOW_RANK)
"""Names of all compressors."""


class ShortForm(NamedTuple):
    """A short form in parts."""

    name: str
    arguments: list[str]
    has_feedback: bool


def parsed(spec: str) -> ShortForm:
    """Split a short form; whether its arguments are right is left to the compressor.

    >>> parsed("uniform:3/max/512+ef")
    ShortForm(name='uniform', arguments=['3', 'max', '512'], has_feedback=True)
    >>> parsed("trunk16")
    Traceback (most recent call last):
    talka.errors.payloads.SpecError: 'trunk16' names no compressor; allowed is 'trunc16', the nearest.
    """
    head, plus, rest = spec.partition("+")
    name, colon, text = head.partition(":")
    arguments = text.split("/") if colon else []
    if "ef" in arguments:
        kept = "/".join(argument for argument in arguments if argument != "ef")
        mended = f"{name}:{kept}+ef" if kept else f"{name}+ef"
        raise SpecError(spec, "has 'ef' where arguments stand", repr(mended))
    if name not in _ARGUMENTS or plus + rest not in ("", "+ef") or "" in arguments:
        raise SpecError(spec, "names no compressor", _allowed(spec))
    return ShortForm(name, arguments, has_feedback=bool(plus))


def _allowed(spec: str) -> str:
    """The nearest short form, or what there is."""
    for name, arguments, feedback in _guesses(spec):
        if re.fullmatch(_ARGUMENTS[name], arguments):
            return repr(name + (f":{arguments}" if arguments else "") + feedback) + ", the nearest"
    return f"name[:argument[/argument...]][+ef] with a name of {', '.join(NAMES)}"


def _guesses(spec: str) -> Iterator[tuple[str, str, str]]:
    """Name, arguments and feedback of what was probably meant, the most likely first."""
    head, plus, _ = re.sub(r"\s", "", spec.lower()).partition("+")
    name, _, rest = head.partition(":")
    guesses = [(name, rest)]
    if glued := re.fullmatch(r"([a-z]+)(\d.*)", head):
        guesses.append((glued[1], glued[2]))
    for name, rest in guesses:
        for near in difflib.get_close_matches(re.sub(r"[-_.]", "", name), _ARGUMENTS):
            yield near, rest, "+ef" if plus else ""
