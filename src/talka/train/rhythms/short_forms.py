"""The short forms of rhythms: `every-step`, `delayed:2`, `local-sgd:50`. Needs no torch."""

import re
from typing import Final, NamedTuple

from talka.errors import InvalidValueError, UnknownNameError

RHYTHMS: Final = ("every-step", "delayed", "local-sgd")
_ALLOWED: Final = (
    "every-step, delayed:S with a whole number of steps S, or local-sgd:K with a whole number of "
    "steps K of at least 1"
)


class RhythmForm(NamedTuple):
    """A rhythm with its number of steps."""

    name: str
    steps: int
    """Steps per round of local-sgd, steps of delay of delayed; 1 for every-step."""

    def __str__(self) -> str:
        return self.name if self.name == "every-step" else f"{self.name}:{self.steps}"


def parsed_rhythm(text: str) -> RhythmForm:
    """Return the rhythm of a short form; `delayed` alone is `delayed:1`.

    >>> parsed_rhythm("local-sgd:50")
    RhythmForm(name='local-sgd', steps=50)
    """
    name, colon, argument = text.partition(":")
    if name not in RHYTHMS:
        raise UnknownNameError("rhythm", name, RHYTHMS)
    if not colon and name != "local-sgd":
        return RhythmForm(name, 1)
    if name == "every-step" or not re.fullmatch(r"\d{1,9}", argument):
        raise InvalidValueError("rhythm", text, _ALLOWED)
    if name == "local-sgd" and int(argument) == 0:
        raise InvalidValueError("rhythm", text, _ALLOWED)
    return RhythmForm(name, int(argument))
