"""Random-k: values at random indices that all workers share, so that only values are sent.

One index is drawn in each of k strides (see `bits/strides.py`) from a seed that workers share.
Without feedback a value is multiplied by the length of its stride, the inverse of its probability,
so that the mean of many encodings is the value. With feedback it is sent as it is, since values
that are not sent stay in the residual. The indices of all workers are equal, so their values can be
summed.

    key of the draw (8)    values, float32
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from talka.compress.base import (
    Draw,
    Residuals,
    SummableCompressor,
    as_floats,
    shares_memory,
)
from talka.compress.bits.select import check_finite, take_at
from talka.compress.bits.strides import one_in_each, sample, stride_lengths
from talka.compress.layout import Layout, Piece, nameless
from talka.compress.payload import Bytes, Floats
from talka.compress.sparse import KeepsShare, place
from talka.errors import InvalidValueError, NonFiniteError, PayloadError

_KEY_BYTES = 8


class RandomK(KeepsShare, SummableCompressor):
    """Keeps a share of the values, at random indices that all workers share."""

    name, code = "randomk", 21
    sparse = contracts = unbiased = detects_nonfinite = True

    def __init__(self, share: float, **options: Any) -> None:
        super().__init__(share, **options)
        self._keys_of: dict[Layout, list[int]] = {}

    def encode_section(
        self, values: Floats, residual: Floats | None, piece: Piece, draw: Draw, room: Bytes
    ) -> int:
        chosen = _choose(values, residual, self._count(len(values)), draw.shared)
        size = _KEY_BYTES + 4 * len(chosen)
        room[:_KEY_BYTES] = np.frombuffer(draw.shared.to_bytes(8, "little"), np.uint8)
        room[_KEY_BYTES:size].view(np.float32)[:] = chosen
        return size

    def decode_section(self, body: Bytes, out: Floats, *, add: bool, scale: float) -> None:
        if len(body) < _KEY_BYTES or len(body) % 4 or len(body) > _KEY_BYTES + 4 * len(out):
            raise PayloadError(f"has a section of {len(body)} bytes for {len(out)} values")
        key = int.from_bytes(body[:_KEY_BYTES].tobytes(), "little")
        chosen = body[_KEY_BYTES:].view(np.float32)
        place(one_in_each(len(out), len(chosen), key), chosen, out, add=add, scale=scale)

    def section_max_bytes(self, num_values: int) -> int:
        return _KEY_BYTES + 4 * self._count(num_values)

    def to_wire(
        self, values: Tensor, layout: Layout | None = None, *, residuals: Residuals | None = None
    ) -> Tensor:
        flat = as_floats(values)
        layout = nameless(len(flat)) if layout is None else layout
        parts, keys = [np.empty(0, np.float32)], []
        for piece, whole in self._sections(layout):
            part = flat[piece.start : piece.stop]
            residual = None if residuals is None else residuals.of(piece)
            if whole:
                parts.append(self._whole(part, residual, piece))
            else:
                keys.append(self._draw(piece).shared)
                parts.append(self._chosen(part, residual, piece, keys[-1]))
        self._keys_of[layout] = keys
        return torch.from_numpy(np.concatenate(parts))

    def from_wire(self, wire: Tensor, out: Tensor, layout: Layout | None = None) -> None:
        sums, target = as_floats(wire), as_floats(out)
        layout = nameless(len(target)) if layout is None else layout
        if layout not in self._keys_of:
            raise InvalidValueError("layout", layout, "one that to_wire was called with")
        keys = iter(self._keys_of[layout])
        at = 0
        for piece, whole in self._sections(layout):
            part = target[piece.start : piece.stop]
            count = len(part) if whole else self._count(len(part))
            sent = sums[at : at + count]
            if len(sent) < count:
                raise PayloadError(f"holds {len(sums)} sums, too few")
            if whole:
                part[:] = sent
            else:
                place(one_in_each(len(part), count, next(keys)), sent, part, add=False, scale=1.0)
            at += count
        if at != len(sums):
            raise PayloadError(f"holds {len(sums)} sums, not {at}")
        if not shares_memory(out):
            out.copy_(torch.from_numpy(target).view_as(out))

    def wire_bytes(self, num_values: int, layout: Layout | None = None) -> float:
        return 4 * sum(
            piece.num_values if whole else self._count(piece.num_values)
            for piece, whole in self._sections(layout or nameless(num_values))
        )

    def _chosen(self, part: Floats, residual: Floats | None, piece: Piece, key: int) -> Floats:
        try:
            return _choose(part, residual, self._count(len(part)), key)
        except FloatingPointError:
            if self.nonfinite == "error":
                raise NonFiniteError(piece.name) from None
            if residual is not None:
                residual[:] = 0
            chosen = sample(part, None, self._count(len(part)), key)
            if np.isfinite(chosen).all():  # the receivers must see that the tensor is not finite
                chosen[0] = np.nan
            return chosen


def _choose(values: Floats, residual: Floats | None, count: int, key: int) -> Floats:
    """Return the values to send; with a residual, keep the sums without them there."""
    check_finite(values, residual)
    if residual is not None:
        chosen = np.empty(count, np.float32)
        take_at(values, residual, one_in_each(len(values), count, key), chosen)
    else:
        length, num_longer = stride_lengths(len(values), count)
        chosen = sample(values, None, count, key)
        with np.errstate(over="ignore"):
            chosen[:num_longer] *= np.float32(length + 1)
            chosen[num_longer:] *= np.float32(length)
    check_finite(chosen)
    return chosen
