"""Significance: an entry is sent once it is large compared with the others.

Entries of at least `ratio` times the root mean square of their section are sent; the others stay in
the residual until they are that large (Hsieh et al., Gaia, NSDI 2017; here the threshold follows
the gradient). Without feedback they are dropped. At least the largest entry is sent, so it
contracts. At most one entry in `ratio`^2 can be that large, which bounds the size.
"""

import math
from typing import Any, Self

import numpy as np

from talka.compiled import compiled
from talka.compress import sparse
from talka.compress.base import Draw, SectionCompressor
from talka.compress.bits.largest import largest
from talka.compress.bits.select import Picked, magnitude_bits, select
from talka.compress.layout import Piece
from talka.compress.payload import Bytes, Floats
from talka.compress.protocol import NonFinite
from talka.compress.seen import BytesSeen
from talka.errors import InvalidValueError, SpecError
from talka.short_forms import number_in, short_number

_LANES = 512
_LARGEST = float(np.finfo(np.float32).max)


class Significance(SectionCompressor):
    """Sends entries of at least `ratio` times the root mean square of their section."""

    name, code = "significance", 23
    sparse = contracts = detects_nonfinite = True

    def __init__(
        self,
        ratio: float,
        *,
        seed: int = 0,
        nonfinite: NonFinite = "error",
        min_compressed_values: int = 0,
    ) -> None:
        super().__init__(
            seed=seed, nonfinite=nonfinite, min_compressed_values=min_compressed_values
        )
        if not 0 < ratio < math.inf:
            raise InvalidValueError("ratio", ratio, "above 0")
        self.ratio = ratio
        density = math.erfc(ratio / math.sqrt(2))  # of a gaussian
        self._seen = BytesSeen(sparse.expected_bytes(1_000_000, 1_000_000 * density) / 1_000_000)

    @classmethod
    def parse(cls, arguments: list[str], **options: Any) -> Self:
        ratio = number_in(arguments[0]) if len(arguments) == 1 else None
        if ratio is None or ratio <= 0:
            raise SpecError(
                ":".join([cls.name, "/".join(arguments)]).removesuffix(":"),
                "does not give the multiple of the root mean square that entries must reach",
                f"one number above 0: {cls.name}:3",
            )
        return cls(ratio, **options)

    @property
    def spec(self) -> str:
        return f"{self.name}:{short_number(self.ratio)}"

    def encode_section(
        self, values: Floats, residual: Floats | None, piece: Piece, draw: Draw, room: Bytes
    ) -> int:
        squares = sum_of_squares(values, residual)
        if not math.isfinite(squares):  # the square of a float32 does not overflow a float64
            raise FloatingPointError
        size = sparse.write(self._pick(values, residual, squares), len(values), room)
        self._seen.note(len(values), size)
        return size

    def _pick(self, values: Floats, residual: Floats | None, squares: float) -> Picked:
        tau = self.ratio * math.sqrt(squares / max(len(values), 1))
        least = magnitude_bits(tau if tau < _LARGEST else math.inf)
        least = max(least, magnitude_bits(1e-45))  # zero is not significant
        guess = round(self._seen.expected(len(values)) / 4)  # more than 4 bytes an entry
        picked = select(values, residual, least, guess=guess)
        if squares and not len(picked.indices):
            picked = largest(values if residual is None else residual, 1)
            if residual is not None:
                residual[picked.indices] = 0
        return picked

    def decode_section(self, body: Bytes, out: Floats, *, add: bool, scale: float) -> None:
        picked = sparse.read(body, len(out))
        sparse.place(picked.indices, picked.values, out, add=add, scale=scale)

    def section_max_bytes(self, num_values: int) -> int:
        if self.ratio <= 1:
            return sparse.max_bytes(num_values, num_values)
        most = int(num_values / self.ratio / self.ratio * (1 + 1e-6)) + 1  # rounded as float32
        return sparse.max_bytes(num_values, min(most, num_values))

    def section_expected_bytes(self, num_values: int) -> float:
        return max(self._seen.expected(num_values), sparse.max_bytes(num_values, 1))


def sum_of_squares(values: Floats, residual: Floats | None) -> float:
    """Return the sum of squares: value i is added to sum i % 512, then those sums in order."""
    return float(_sum_of_squares(values, residual))


@compiled
def _sum_of_squares(values: Any, residual: Any) -> Any:
    lanes = np.zeros(_LANES)
    for start in range(0, len(values), _LANES):
        block = values[start : start + _LANES]
        if residual is None:
            for lane in range(len(block)):
                value = np.float64(block[lane])
                lanes[lane] += value * value
        else:
            rest = residual[start : start + _LANES]
            for lane in range(len(block)):
                value = np.float64(np.float32(block[lane] + rest[lane]))
                lanes[lane] += value * value
    total = 0.0
    for lane in range(_LANES):
        total += lanes[lane]
    return total
