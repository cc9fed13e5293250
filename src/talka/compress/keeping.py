"""The base class of compressors that keep a fixed share of the values of each section."""

from typing import Any, Self

from talka.compress.arguments import share, short
from talka.compress.base import SectionCompressor
from talka.compress.protocol import NonFinite
from talka.errors import InvalidValueError


class KeepsShare(SectionCompressor):
    """Keeps a share of the values of each section, and at least one."""

    def __init__(
        self,
        share: float,
        *,
        seed: int = 0,
        nonfinite: NonFinite = "error",
        min_compressed_values: int = 0,
    ) -> None:
        super().__init__(
            seed=seed, nonfinite=nonfinite, min_compressed_values=min_compressed_values
        )
        if not 0 < share <= 1:
            raise InvalidValueError("share", share, "above 0 and at most 1")
        self.share = share

    @classmethod
    def parse(cls, arguments: list[str], **options: Any) -> Self:
        return cls(share(cls.name, arguments), **options)

    @property
    def spec(self) -> str:
        return f"{self.name}:{short(self.share)}"

    def _count(self, num_values: int) -> int:
        return min(max(round(self.share * num_values), 1), num_values)
