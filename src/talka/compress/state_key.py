"""Keys of saved state: typed in memory, text such as `worker/residual/fc.weight` in files."""

from typing import Final, NamedTuple

from torch import Tensor

RHYTHM: Final = "rhythm"
"""Side of state that belongs to a rhythm, not to an exchange."""
SIDES: Final = ("worker", "owner", RHYTHM)
"""The two places where an exchange encodes (gradients at each worker, averages at their owner), and
the rhythm that uses the exchange."""
_WITH_OFFSET: Final = ("times", "floor", "late")
"""Kinds with a number: of the first value of a slice of the parameter, or of a step."""
_MAX_DIGITS: Final = 15


class StateKey(NamedTuple):
    """Identifies one tensor in the state of a compressor or an exchange.

    >>> StateKey.parse("worker/times/1024/fc.weight")
    StateKey(kind='times', name='fc.weight', offset=1024, side='worker')
    >>> str(StateKey("residual", "fc.weight").at("owner"))
    'owner/residual/fc.weight'
    """

    kind: str
    """`residual`, `momentum`, `start`, `times`, `floor`; of a rhythm `anchor`, `velocity` and
    `late`; `extra` outside of talka."""
    name: str
    """Name of the parameter."""
    offset: int | None = None
    """First value of the slice of the parameter, or for `late` the number of averages that are applied
    first; None for the whole parameter."""
    side: str = ""
    """One of `SIDES`; empty in the state of a compressor, which does not know its side."""

    def at(self, side: str) -> "StateKey":
        """Return this key for one side of an exchange; an empty side removes it."""
        return self._replace(side=side)

    @classmethod
    def parse(cls, text: str) -> "StateKey":
        """Read a key as `str` writes it. Raise ValueError if an offset is missing or wrong."""
        first, _, rest = text.partition("/")
        side, kind, name = "", first, rest
        if first in SIDES:
            side = first
            kind, _, name = rest.partition("/")
        if kind not in _WITH_OFFSET:
            return cls(kind, name, side=side)
        digits, _, name = name.partition("/")
        if not (digits.isascii() and digits.isdecimal() and len(digits) <= _MAX_DIGITS):
            raise ValueError(f"{text!r} has no offset")
        return cls(kind, name, int(digits), side)

    def __str__(self) -> str:
        parts = [self.side] if self.side else []
        parts.append(self.kind)
        if self.offset is not None:
            parts.append(str(self.offset))
        return "/".join([*parts, self.name])


State = dict[StateKey, Tensor]
"""All that the next call depends on."""
