"""Sections of selected values and their indices, and the base class of compressors with a fixed share.

    count (4)    values, float32, in the order of their indices    indices, Rice-coded in words of 4

`max_bytes(num_values, count)` bounds the size: Rice codes have a maximum length (see
`bits/rice.py`), 5% above the mean.
"""

from typing import Any, Self

import numpy as np

from talka.compiled import compiled
from talka.compress.base import SectionCompressor
from talka.compress.bits import rice
from talka.compress.bits.select import Picked
from talka.compress.payload import Bytes, Floats
from talka.compress.protocol import NonFinite
from talka.errors import InvalidValueError, PayloadError
from talka.short_forms import share_of, short_number

_COUNT_BYTES = 4


def max_bytes(num_values: int, count: int) -> int:
    """Return an upper bound of the bytes of a section."""
    return _COUNT_BYTES + 4 * count + 4 * rice.max_words(num_values, count)


def expected_bytes(num_values: int, count: float) -> float:
    """Return the expected bytes of a section."""
    return _COUNT_BYTES + 4 * count + 4 * rice.expected_words(num_values, count)


def write(picked: Picked, num_values: int, room: Bytes) -> int:
    """Write a section into `room`, and return the number of bytes."""
    count = len(picked.indices)
    words = rice.encode(picked.indices, num_values)
    size = _COUNT_BYTES + 4 * count + 4 * len(words)
    into = room[:size].view(np.uint32)
    into[0] = count
    into[1 : 1 + count] = picked.values.view(np.uint32)
    into[1 + count :] = words
    return size


def read(body: Bytes, num_values: int) -> Picked:
    """Read a section. Raise PayloadError if it cannot have been written by `write`."""
    if len(body) < _COUNT_BYTES or len(body) % 4:
        raise PayloadError(f"has a section of {len(body)} bytes, which is not a count and words")
    words = body.view(np.uint32)
    count = int(words[0])
    if 1 + count > len(words):
        raise PayloadError(f"has a section of {len(body)} bytes, too few for {count} values")
    indices = rice.decode(words[1 + count :], num_values, count)
    return Picked(indices, words[1 : 1 + count].view(np.float32), num_values)


def place(indices: rice.Indices, values: Floats, out: Floats, *, add: bool, scale: float) -> None:
    """Write `scale` times the values to ascending indices of `out`, or add them there."""
    if not add:
        out[:] = 0
    _place(indices, values, np.float32(scale), add, out)


@compiled
def _place(indices: Any, values: Any, scale: Any, add: Any, out: Any) -> None:
    for at in range(len(indices)):
        value = np.float32(values[at] * scale)
        index = indices[at]
        if add:
            out[index] = np.float32(out[index] + value)
        else:
            out[index] = value


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
        return cls(share_of(cls.name, arguments), **options)

    @property
    def spec(self) -> str:
        return f"{self.name}:{short_number(self.share)}"

    def _count(self, num_values: int) -> int:
        return min(max(round(self.share * num_values), 1), num_values)
