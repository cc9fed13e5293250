"""Rhythms by their short forms: `every-step`, `delayed:2`, `local-sgd:50`. Needs no torch.

`talka train --rhythm` and `talka.train.fit` read them here.
"""

import re
from dataclasses import dataclass
from typing import Final, Self

from talka.errors import InvalidValueError, OptionError, UnknownNameError
from talka.train.rhythms.outer import Outer

RHYTHMS: Final = ("every-step", "delayed", "local-sgd")
"""Names of the rhythms."""
_ALLOWED: Final = (
    "every-step; delayed:S with a whole number S of at least 0; or local-sgd:K with a whole number K "
    "of at least 1"
)
_PATTERNS: Final = {
    "every-step": r"every-step",
    "delayed": r"delayed(:(?P<steps>\d{1,9}))?",
    "local-sgd": r"local-sgd:(?P<steps>[1-9]\d{0,8})",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RhythmConfig:
    """A rhythm by its name, with its options.

    >>> str(RhythmConfig(name="local-sgd", steps=50, outer="nesterov:0.7/0.9"))
    'local-sgd:50'
    """

    name: str = "every-step"
    """`every-step`, `delayed` or `local-sgd`."""
    steps: int = 1
    """Number of steps: the delay of `delayed`, or the steps between two rounds of `local-sgd`."""
    momentum: float = 0.0
    """Momentum before compression, of `every-step` and `delayed`; the optimizer then has none."""
    outer: str | None = None
    """Outer optimizer of `local-sgd`, such as `nesterov:0.7/0.9`."""
    warmup_steps: int = 0
    """Number of first steps of `local-sgd` that average gradients instead."""

    def __post_init__(self) -> None:
        if self.name not in RHYTHMS:
            raise UnknownNameError("rhythm", self.name, RHYTHMS)
        if self.steps < (self.name != "delayed"):
            raise InvalidValueError("rhythm", str(self), _ALLOWED)
        if self.warmup_steps < 0:
            allowed = "a whole number of at least 0"
            raise InvalidValueError("RhythmConfig.warmup_steps", self.warmup_steps, allowed)
        if self.outer is not None:
            Outer.parse(self.outer)
        is_local = self.name == "local-sgd"
        for option, given, fits in (
            ("outer", self.outer, is_local),
            ("warmup_steps", self.warmup_steps, is_local),
            ("momentum", self.momentum, not is_local),
        ):
            if given and not fits:
                advice = (
                    "Use rhythm local-sgd:K." if not is_local else "Use every-step or delayed:S."
                )
                raise OptionError(option, f"is not an option of the rhythm {self}", advice)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a short form.

        >>> RhythmConfig.parse("delayed:2").steps
        2
        """
        name = text.partition(":")[0]
        if name not in RHYTHMS:
            raise UnknownNameError("rhythm", name, RHYTHMS)
        match = re.fullmatch(_PATTERNS[name], text)
        if match is None:
            raise InvalidValueError("rhythm", text, _ALLOWED)
        return cls(name=name, steps=int(match.groupdict().get("steps") or 1))

    def __str__(self) -> str:
        return self.name if self.name == "every-step" else f"{self.name}:{self.steps}"


def rhythm_of(given: "RhythmConfig | str") -> RhythmConfig:
    """Return the rhythm of a short form or a config."""
    return RhythmConfig.parse(given) if isinstance(given, str) else given
