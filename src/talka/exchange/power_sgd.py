"""`powersgd:R` as a value: what `LowRank` takes where other exchanges take a compressor."""

from talka.compress import Compressor
from talka.compress.protocol import NonFinite, Properties
from talka.errors import InvalidValueError, SpecError
from talka.short_forms import LOW_RANK


class PowerSgd(Properties):
    """The rank of `powersgd:R`, and its properties, as a compressor would answer them."""

    keeps_residuals = True

    def __init__(self, factor_rank: int, *, nonfinite: NonFinite = "error") -> None:
        if factor_rank < 1:
            raise InvalidValueError("rank of powersgd", factor_rank, "a whole number of at least 1")
        if nonfinite not in ("error", "pass"):
            raise InvalidValueError("nonfinite", nonfinite, "'error' or 'pass'")
        self.factor_rank = factor_rank
        self.nonfinite: NonFinite = nonfinite

    @property
    def spec(self) -> str:
        """Short form."""
        return f"{LOW_RANK}:{self.factor_rank}"


Codec = Compressor | PowerSgd
"""What an exchange is opened with."""


def powersgd_rank(spec: str) -> int | None:
    """Return R of `powersgd:R`, or None for any other short form."""
    name, colon, argument = spec.partition(":")
    if name != LOW_RANK:
        return None
    if not (colon and argument.isdecimal() and int(argument) > 0):
        raise SpecError(
            spec,
            "has no rank",
            "powersgd:R with a whole number of at least 1, such as powersgd:4",
        )
    return int(argument)
