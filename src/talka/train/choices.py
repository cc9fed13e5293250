"""Choices of the command line that `fit` reads inside a script started by `talka train`.

    talka train --rhythm local-sgd:50 script.py -> TALKA_CHOICES={"rhythm": "local-sgd:50"} -> current()

One environment variable carries them, so they reach the ranks of every engine, and the processes
that a rank starts. Under torchrun and plain Python nothing is chosen.
"""

import dataclasses
import json
import os
import re
from dataclasses import dataclass
from typing import Final

from talka.errors import InvalidValueError, UnknownNameError
from talka.short_forms import parsed

VARIABLE: Final = "TALKA_CHOICES"
RHYTHMS: Final = ("every-step", "local-sgd")
"""Names of the rhythms; `local-sgd:50` has the number of steps between two averages."""
EXCHANGES: Final = (
    "two-phase",
    "all-gather",
    "master",
    "hierarchical",
    "global-topk",
    "ring",
    "direct",
    "tree",
    "low-rank",
)
"""Names of the exchanges (`talka.exchange.registry` has the classes, which need torch)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """How workers exchange what they learn, as far as it was given on the command line."""

    rhythm: str | None = None
    """When workers synchronise, such as `every-step` or `local-sgd:50`."""
    compressor: str | None = None
    """Short form of the compressor, such as `onebit+ef`."""
    exchange: str | None = None
    """Name of the exchange, such as `two-phase`."""
    network: str | None = None
    """Path of the hosts file of the network between the workers."""

    def check(self) -> None:
        """Raise an error if a name is not known. The file is not opened."""
        if self.rhythm is not None:
            _check_rhythm(self.rhythm)
        if self.compressor is not None:
            parsed(self.compressor)
        if self.exchange is not None and self.exchange not in EXCHANGES:
            raise UnknownNameError("exchange", self.exchange, EXCHANGES)

    def environment(self) -> dict[str, str]:
        """Return the environment variable that carries what was given."""
        given = {name: text for name, text in dataclasses.asdict(self).items() if text is not None}
        return {VARIABLE: json.dumps(given)}


def current() -> Choices:
    """Return the choices for this process.

    Raises InvalidValueError if the environment variable has other content than `talka train` writes.
    """
    text = os.environ.get(VARIABLE) or "{}"
    known = {field.name for field in dataclasses.fields(Choices)}
    try:
        given = json.loads(text)
    except ValueError:
        given = None
    is_valid = isinstance(given, dict) and all(isinstance(value, str) for value in given.values())
    if not is_valid or not given.keys() <= known:
        allowed = f"a JSON object of texts with the keys {', '.join(sorted(known))}"
        raise InvalidValueError(VARIABLE, text, allowed)
    return Choices(**given)


def _check_rhythm(text: str) -> None:
    name, _, argument = text.partition(":")
    if name not in RHYTHMS:
        raise UnknownNameError("rhythm", name, RHYTHMS)
    has_argument = ":" in text
    if has_argument and (name != "local-sgd" or not re.fullmatch(r"[1-9]\d{0,8}", argument)):
        allowed = "every-step, or local-sgd:K with a whole number K of at least 1"
        raise InvalidValueError("rhythm", text, allowed)
