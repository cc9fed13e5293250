"""Choices of the command line that `fit` reads inside a script started by `talka train`.

    talka train --rhythm local-sgd:50 script.py -> TALKA_CHOICES={"rhythm": "local-sgd:50"} -> current()

One environment variable carries them, so they reach the ranks of every engine, and the processes
that a rank starts. Under torchrun and plain Python nothing is chosen.
"""

import dataclasses
import json
import os
from dataclasses import dataclass, replace
from typing import Final

from talka.errors import InvalidValueError, UnknownNameError
from talka.short_forms import parsed
from talka.train.rhythms.outer import Outer
from talka.train.rhythms.short_forms import RhythmConfig

VARIABLE: Final = "TALKA_CHOICES"
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
    """Short form of the rhythm: `every-step`, `delayed:1`, `local-sgd:50`."""
    outer: str | None = None
    """Outer optimizer of `local-sgd`, such as `nesterov:0.7/0.9`."""
    compressor: str | None = None
    """Short form of the compressor, such as `onebit+ef`."""
    exchange: str | None = None
    """Name of the exchange, such as `two-phase`."""
    network: str | None = None
    """Path of the hosts file of the network between the workers."""

    def check(self) -> None:
        """Raise an error if a name is not known. The file is not opened."""
        if self.rhythm is not None:
            replace(RhythmConfig.parse(self.rhythm), outer=self.outer)
        elif self.outer is not None:
            Outer.parse(self.outer)
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
