"""Two bytes per value: fp16, bf16, and float32 without its low half.

fp16 keeps 11 bits of a value and ends at 65,504; bf16 keeps 8 bits and has the range of float32.
Both round to nearest, ties to even. A value beyond the range becomes the largest value of the type,
so that finite values stay finite; with error feedback the rest is sent later. `trunc16` sends the
upper half of a float32, and the receiver fills the lower half with zeros: values never grow, so it
is biased towards zero.

fp16 and bf16 can be summed as they are. A sum beyond their range becomes infinity, as with the
hooks of PyTorch.
"""

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from talka.compiled import compiled
from talka.compress.base import Draw, SectionCompressor
from talka.compress.bits.dense import are_finite, larger, rest_of, wanted
from talka.compress.bits.lanes import LANES, bits_of, floats_of, load, spread, store, where
from talka.compress.dense import Dense
from talka.compress.layout import Piece
from talka.compress.payload import Bytes, Floats
from talka.errors import PayloadError

FP16, BF16, CUT = 0, 1, 2

_SIGN, _NO_SIGN = np.uint32(0x8000), np.uint32(0x7FFFFFFF)
_ZERO, _HALF, _ALL_ONES = np.float32(0), np.float32(0.5), np.uint32(0x7F800000)
_LARGEST_FP16, _SMALLEST_NORMAL = np.uint32(0x477FE000), np.uint32(0x38800000)
_LARGEST_BF16 = np.uint32(0x7F7F0000)
_EXPONENTS = np.uint32(112 << 23)  # between those of fp16 and float32
_RAISE = np.float32(2.0**112)


class _Halves(SectionCompressor):
    """The base class of all three; `form` selects the format in the kernels."""

    contracts = safe_with_adam = detects_nonfinite = True
    form: ClassVar[int]

    def encode_section(
        self, values: Floats, residual: Floats | None, piece: Piece, draw: Draw, room: Bytes
    ) -> int:
        _send(values, residual, room[: 2 * len(values)].view(np.uint16), self.form)
        return 2 * len(values)

    def decode_section(self, body: Bytes, out: Floats, *, add: bool, scale: float) -> None:
        if len(body) != 2 * len(out):
            raise PayloadError(f"has {len(body)} bytes for {len(out)} values of 2 bytes")
        _from_halves(body.view(np.uint16), out, self.form, add, np.float32(scale))

    def section_max_bytes(self, num_values: int) -> int:
        return 2 * num_values


class _SummableHalves(_Halves, Dense):
    def fill(self, values: Floats, residual: Floats | None, wire: Tensor) -> None:
        _send(values, residual, wire.view(torch.uint16).numpy(), self.form)


class Fp16(_SummableHalves):
    name, code, form = "fp16", 1, FP16
    wire_type = torch.float16


class Bf16(_SummableHalves):
    name, code, form = "bf16", 2, BF16
    wire_type = torch.bfloat16


class Trunc16(_Halves):
    name, code, form = "trunc16", 3, CUT


def _send(values: Floats, residual: Floats | None, sent: NDArray[np.uint16], form: int) -> None:
    if not _to_halves(values, residual, sent, form):
        raise FloatingPointError


@compiled
def _to_halves(values: Any, residual: Any, sent: Any, form: Any) -> Any:
    """Return True if all values are finite; the residual of those that are not is 0."""
    full = len(values) // LANES * LANES
    worst = spread(np.int32(0))
    for at in range(0, full, LANES):
        worst = _one_row(values, residual, sent, at, form, worst)
    if full < len(values):
        rest_values = rest_of(values, full, len(values), LANES)
        rest_residual = rest_of(residual, full, len(values), LANES)
        rest = np.empty(LANES, np.uint16)
        worst = _one_row(rest_values, rest_residual, rest, 0, form, worst)
        sent[full:] = rest[: len(values) - full]
        if residual is not None:
            residual[full:] = rest_residual[: len(values) - full]
    return are_finite(worst)


@compiled
def _one_row(values: Any, residual: Any, sent: Any, at: Any, form: Any, worst: Any) -> Any:
    row = wanted(values, residual, at)
    halves = _halves_of(bits_of(row), form)
    store(sent, at, halves)
    if residual is not None:
        is_finite = (bits_of(row) & _NO_SIGN) < _ALL_ONES
        store(residual, at, where(is_finite, row - _floats_of(halves, form), _ZERO))
    return larger(worst, row)


@compiled
def _halves_of(bits: Any, form: Any) -> Any:
    if form == CUT:
        return bits >> 16
    sign, bits = (bits >> 16) & _SIGN, bits & _NO_SIGN
    if form == BF16:
        bits = where(bits > _LARGEST_BF16, _LARGEST_BF16, bits)
        return sign | ((bits + ((bits >> 16) & 1) + 0x7FFF) >> 16)
    bits = where(bits > _LARGEST_FP16, _LARGEST_FP16, bits)
    normal = (bits - _EXPONENTS + ((bits >> 13) & 1) + 0xFFF) >> 13
    # Subnormal fp16 values are multiples of 2^-24, as are float32 values between 0.5 and 1.
    tiny = bits_of(floats_of(bits) + _HALF) - bits_of(spread(_HALF))
    return sign | where(bits < _SMALLEST_NORMAL, tiny, normal)


@compiled
def _floats_of(halves: Any, form: Any) -> Any:
    if form != FP16:
        return floats_of(halves << 16)
    shifted = (halves & 0x7FFF) << 13
    raised = bits_of(floats_of(shifted) * _RAISE)
    unfinite = (halves & 0x7C00) == 0x7C00
    return floats_of(((halves & _SIGN) << 16) | where(unfinite, shifted | _ALL_ONES, raised))


@compiled
def _from_halves(sent: Any, out: Any, form: Any, add: Any, scale: Any) -> None:
    full = len(out) // LANES * LANES
    for at in range(0, full, LANES):
        row = _floats_of(load(sent, at), form) * scale
        store(out, at, load(out, at) + row if add else row)
    if full < len(out):
        rest_sent = rest_of(sent, full, len(out), LANES)
        rest = rest_of(out, full, len(out), LANES)
        row = _floats_of(load(rest_sent, 0), form) * scale
        store(rest, 0, load(rest, 0) + row if add else row)
        out[full:] = rest[: len(out) - full]
