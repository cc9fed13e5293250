"""Top-k: the largest entries of each section by magnitude, with their indices.

The result is exactly the k largest, for any size; of equal values, those with the lowest indices;
never zeros, so a section with fewer nonzero values is smaller. It is biased, so it is used with
error feedback: values that are not sent are part of the next encoding (Stich et al.,
arXiv:1809.07599).

A large section takes one pass, and with a residual another one before it that looks for NaN. A
threshold from a sample is set so low that a few more than k values reach it, and the k largest of
those are sent. If the sample is misleading (for example, if most values are equal), the digits of
all values are counted, which takes a few more passes. The same values are sent either way.
"""

import math

import numpy as np

from talka.compress import sparse
from talka.compress.base import Draw
from talka.compress.bits.largest import kth_largest, largest, narrow, put_back
from talka.compress.bits.select import Picked, check_finite, magnitude_bits, select
from talka.compress.bits.strides import sample
from talka.compress.layout import Piece
from talka.compress.payload import Bytes, Floats
from talka.compress.sparse import KeepsShare

COUNTED_UP_TO = 1 << 14
"""Largest number of values per section for which counting is faster than a sample."""
_SMALLEST = magnitude_bits(1e-45)


class TopK(KeepsShare):
    """Keeps the largest values of each section."""

    name, code = "topk", 20
    sparse = contracts = keeps_largest = detects_nonfinite = True

    def encode_section(
        self, values: Floats, residual: Floats | None, piece: Piece, draw: Draw, room: Bytes
    ) -> int:
        if residual is not None:
            check_finite(values, residual)
        picked = pick_largest(values, residual, self._count(len(values)), draw.noise)
        check_finite(picked.values)  # values that are not finite are always among the largest
        return sparse.write(picked, len(values), room)

    def decode_section(self, body: Bytes, out: Floats, *, add: bool, scale: float) -> None:
        picked = sparse.read(body, len(out))
        sparse.place(picked.indices, picked.values, out, add=add, scale=scale)

    def section_max_bytes(self, num_values: int) -> int:
        return sparse.max_bytes(num_values, self._count(num_values))

    def section_expected_bytes(self, num_values: int) -> float:
        return sparse.expected_bytes(num_values, self._count(num_values))


def pick_largest(values: Floats, residual: Floats | None, count: int, key: int) -> Picked:
    """Return the largest sums of value and residual; the residual becomes the other sums."""
    depth, size = _depth(len(values), count)
    if depth >= size:
        wanted = values if residual is None else np.add(values, residual, out=residual)
        return _of_all(wanted, residual, count)
    sampled = sample(values, residual, size, key)
    least = max(np.int32(kth_largest(sampled.view(np.int32), depth)[0]), _SMALLEST)
    guess = round(1.25 * depth / size * len(values))
    picked = select(values, residual, least, guess=guess, limit=4 * guess)
    if picked.stop == len(values) and (len(picked.indices) >= count or least == _SMALLEST):
        return narrow(picked, count, residual)
    if residual is None:
        return _of_all(values, None, count)
    put_back(picked, residual)
    residual[picked.stop :] += values[picked.stop :]
    return _of_all(residual, residual, count)


def _of_all(wanted: Floats, residual: Floats | None, count: int) -> Picked:
    picked = largest(wanted, count)
    if residual is not None:
        residual[picked.indices] = 0
    return picked


def _depth(num_values: int, count: int) -> tuple[int, int]:
    """Return k and the size of a sample whose k-th largest value at least `count` values reach.

    That holds almost always; (0, 0) if the section is too small for a sample.
    """
    if num_values <= COUNTED_UP_TO:
        return 0, 0
    size = min(max(num_values // 32, 1 << 12), 1 << 15)
    mean = count * size / num_values
    return math.ceil(mean + 3 * math.sqrt(mean) + 3), size
