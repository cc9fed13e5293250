"""Outer optimizers, which apply the averaged change of a round (T8).

A round gives the average of the changes that the workers made to a common starting point. Applied as
it is, that is parameter averaging. An outer optimizer takes it as a step of its own:

    velocity = momentum x velocity + change
    nesterov:  point += rate x (change + momentum x velocity)      DiLoCo (arXiv:2311.08105)
    otherwise: point += rate x velocity                            BMUF (Chen and Huo, 2016)
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from talka.errors import InvalidValueError

if TYPE_CHECKING:  # `talka train` reads short forms without torch
    from torch import Tensor

_FORMS = (
    "'nesterov:RATE/MOMENTUM' such as 'nesterov:0.7/0.9' (DiLoCo), 'momentum:RATE/MOMENTUM' such as "
    "'momentum:1/0.75' (BMUF), or 'sgd:RATE'"
)


@dataclass(frozen=True, slots=True)
class Outer:
    """An outer optimizer: `nesterov:0.7/0.9`, `momentum:1/0.75` or `sgd:0.9`."""

    rate: float = 0.7
    """Learning rate; 1 applies the average as it is."""
    momentum: float = 0.9
    """Share of the former velocity that is kept; for BMUF with P workers, 1 - 1/P is usual."""
    nesterov: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.rate < 100:
            raise InvalidValueError("rate of the outer optimizer", self.rate, "above 0, below 100")
        if not 0 <= self.momentum < 1:
            allowed = "at least 0 and below 1"
            raise InvalidValueError("momentum of the outer optimizer", self.momentum, allowed)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a short form.

        >>> Outer.parse("nesterov:0.7/0.9") == Outer(), str(Outer.parse("sgd:0.5"))
        (True, 'sgd:0.5')
        """
        kind, _, numbers = text.partition(":")
        rate, slash, momentum = numbers.partition("/")
        try:
            if kind not in ("nesterov", "momentum", "sgd") or bool(slash) == (kind == "sgd"):
                raise ValueError
            return cls(float(rate), float(momentum or 0), kind == "nesterov")
        except InvalidValueError:
            raise
        except ValueError:
            raise InvalidValueError("outer", text, _FORMS) from None

    def __str__(self) -> str:
        if not self.momentum:
            return f"sgd:{self.rate:g}"
        kind = "nesterov" if self.nesterov else "momentum"
        return f"{kind}:{self.rate:g}/{self.momentum:g}"

    def step(self, point: "Tensor", velocity: "Tensor", change: "Tensor") -> None:
        """Apply an averaged change to the common point, in place."""
        velocity.mul_(self.momentum).add_(change)
        if self.nesterov:
            point.add_(change, alpha=self.rate)
            point.add_(velocity, alpha=self.rate * self.momentum)
        else:
            point.add_(velocity, alpha=self.rate)


def outer_of(given: "Outer | str | None") -> Outer | None:
    """Return the outer optimizer of a short form or object; None for plain averages."""
    return Outer.parse(given) if isinstance(given, str) else given
