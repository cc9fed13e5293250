"""Compressors written outside of talka, as users write them; both are registered by name.

`Steps` has the base class for sections. `Halved` implements the protocol alone, so that error feedback
takes its general path.
"""

import copy

import numpy as np
import torch

from talka.compress import (
    Compressor,
    Payload,
    PayloadWriter,
    SectionCompressor,
    StateKey,
    register,
)
from talka.compress.layout import nameless
from talka.compress.payload import HEADER, SECTION, padded, sections
from talka.errors import InvalidValueError, NonFiniteError, PayloadError, SpecError


class Steps(SectionCompressor):
    """Rounds to a number of even steps up to the largest magnitude: one byte per value."""

    name, code, contracts = "steps", 200, True

    def __init__(self, count=127, **options):
        super().__init__(**options)
        self.count = count

    @classmethod
    def parse(cls, arguments, **options):
        [text] = arguments if len(arguments) == 1 else ["127" if not arguments else ""]
        if not (text.isdecimal() and 0 < int(text) < 128):
            raise SpecError(f"steps:{'/'.join(arguments)}", "has no count", "steps:100")
        return cls(int(text), **options)

    @property
    def spec(self):
        return f"steps:{self.count}"

    @np.errstate(over="ignore", invalid="ignore")  # the largest floats are among the values
    def encode_section(self, values, residual, piece, draw, room):
        wanted = values if residual is None else values + residual
        step = np.abs(wanted).max(initial=1e-30) / np.float32(self.count)
        step = np.nextafter(step, np.float32(0))  # so that the largest level does not overflow
        levels = np.rint(wanted / step).astype(np.int8)
        room[:4].view(np.float32)[0] = step
        room[4 : 4 + len(levels)] = levels.view(np.uint8)
        if residual is not None:
            residual[:] = wanted - levels * step
        return 4 + len(levels)

    @np.errstate(over="ignore", invalid="ignore")
    def decode_section(self, body, out, *, add, scale):
        if len(body) != 4 + len(out):
            raise PayloadError(f"has {len(body)} bytes for {len(out)} values")
        values = body[4:].view(np.int8) * body[:4].view(np.float32) * np.float32(scale)
        out[:] = out + values if add else values

    def section_max_bytes(self, num_values):
        return 4 + num_values


def pieces_of(layout, num_values):
    return nameless(num_values) if layout is None else layout


class Halved(Compressor):
    """Rounds to bf16, can be summed, and counts its encodings in its state."""

    name, spec, code = "halved", "halved", 201
    contracts = summable = safe_with_adam = True

    def __init__(self, *, seed=0, nonfinite="error", min_compressed_values=0):
        self.nonfinite, self.min_compressed_values = nonfinite, min_compressed_values
        self.num_encodings = 0

    @classmethod
    def parse(cls, arguments, **options):
        if arguments:
            raise SpecError("halved:", "has an argument, but takes none", "halved")
        return cls(**options)

    def encode(self, values, layout=None, *, out=None):
        flat = values.detach().reshape(-1).float()
        limit = self.max_bytes(flat.numel(), layout)
        buffer = torch.empty(limit, dtype=torch.uint8) if out is None else out
        if buffer.numel() < limit:
            raise InvalidValueError("len(out)", buffer.numel(), f"at least max_bytes, {limit}")
        writer = PayloadWriter(buffer.numpy(), self.code)
        for piece in pieces_of(layout, flat.numel()):
            part = flat[piece.start : piece.stop]
            is_finite = bool(part.isfinite().all())
            if not is_finite and self.nonfinite == "error":
                raise NonFiniteError(piece.name)
            if not is_finite or piece.num_values < self.min_compressed_values:
                writer.raw_section(part.contiguous().numpy())
            elif not piece.num_values:
                writer.close_section(0, 0)
            else:
                body = part.to(torch.bfloat16).view(torch.uint8).numpy()
                writer.room()[: len(body)] = body
                writer.close_section(piece.num_values, len(body))
        self.num_encodings += 1
        return Payload(buffer[: len(writer.finish())])

    def decode(self, payload, out, layout=None, *, add=False, scale=1.0):
        pieces = iter(pieces_of(layout, out.numel()))
        decoded = out.detach().reshape(-1).float().clone()
        num_values = sum(piece.num_values for piece in pieces_of(layout, out.numel()))
        for section in sections(payload, code=self.code, num_values=num_values):
            piece = next(pieces)
            if section.num_values != piece.num_values:
                raise PayloadError("has other sections than the tensor has pieces")
            if not piece.num_values:
                continue
            body = torch.from_numpy(section.body.copy())
            if not section.raw and len(body) != 2 * piece.num_values:
                raise PayloadError("has a section of a wrong length")
            values = body.view(torch.float32 if section.raw else torch.bfloat16).float() * scale
            part = decoded[piece.start : piece.stop]
            part.copy_(part + values if add else values)
        out.copy_(decoded.view_as(out))

    def expected_bytes(self, num_values, layout=None):
        return self._bytes(num_values, layout, 2)

    def max_bytes(self, num_values, layout=None):
        return self._bytes(num_values, layout, 4 if self.nonfinite == "pass" else 2)

    def _bytes(self, num_values, layout, width):
        total = HEADER.size
        for piece in pieces_of(layout, num_values):
            is_small = piece.num_values < self.min_compressed_values
            total += SECTION.size + padded((4 if is_small else width) * piece.num_values)
        return total

    def to_wire(self, values, layout=None):
        flat = values.detach().reshape(-1).float()
        for piece in pieces_of(layout, flat.numel()):
            if self.nonfinite == "error" and not flat[piece.start : piece.stop].isfinite().all():
                raise NonFiniteError(piece.name)
        return flat.to(torch.bfloat16)

    def from_wire(self, wire, out, layout=None):
        out.copy_(wire.view_as(out))

    def wire_bytes(self, num_values, layout=None):
        return 2 * num_values

    def for_worker(self, index):
        fresh = copy.copy(self)
        fresh.num_encodings = 0
        return fresh

    def state(self):
        return {StateKey("extra", "encodings"): torch.tensor(self.num_encodings)}

    def load_state(self, state):
        count = state.get(StateKey("extra", "encodings"))
        self.num_encodings = 0 if count is None else int(count)


register("steps", Steps.parse)
register("halved", Halved.parse)

SPECS = ["steps:100", "halved", "steps:100+ef", "halved+ef"]
