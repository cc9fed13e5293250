"""Base classes of compressors: a subclass encodes one section, the base class all the rest.

The base class walks the layout, sends small pieces uncompressed, names tensors in errors, and
writes header and sections. A subclass defines how the values of ONE section become bytes, and back.
Nothing here communicates. `protocol.py` lists what exchanges expect of a compressor.
"""

import copy
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import torch
from torch import Tensor

from talka.compress.bits.dense import take
from talka.compress.bits.select import check_finite
from talka.compress.layout import Layout, Piece, nameless
from talka.compress.payload import (
    HEADER,
    MAX_SECTION_VALUES,
    SECTION,
    Bytes,
    Floats,
    Payload,
    PayloadWriter,
    padded,
    sections,
)
from talka.compress.protocol import NonFinite
from talka.compress.state_key import State, StateKey
from talka.errors import InvalidValueError, NonFiniteError, PayloadError, SpecError

OUTSIDE_CODE = 255


@dataclass(frozen=True, slots=True)
class Draw:
    """Seeds of the random choices of one section; a choice also depends on the index of a value."""

    shared: int
    """64 bits that are the same on every worker, for choices that all workers must share."""

    noise: int
    """64 bits that differ between workers, for rounding: errors then cancel in the average."""


class SectionCompressor(ABC):
    """A compressor defined by how it encodes and decodes one section.

    Subclasses outside of talka work in every exchange: given as an object, or by the name under
    which `talka.compress.register` knows them. Properties are those of `protocol.Properties`.
    """

    name: ClassVar[str]
    code: ClassVar[int] = OUTSIDE_CODE
    """Byte in every payload that identifies the compressor.

    Codes below 128 are those of talka, each used once; others are free for compressors outside."""
    sparse: bool = False
    unbiased: bool = False
    contracts: bool = False
    safe_with_adam: bool = False
    keeps_largest: bool = False
    keeps_residuals: bool = False
    summable: bool = False
    has_feedback: bool = False
    """True if `ErrorFeedback` is around this one; a subclass may have other defaults then."""
    detects_nonfinite: ClassVar[bool] = False
    """True if `encode_section` raises FloatingPointError for NaN and infinity.

    Otherwise the base class looks for them before, which takes a pass over the values."""

    def __init__(
        self, *, seed: int = 0, nonfinite: NonFinite = "error", min_compressed_values: int = 0
    ) -> None:
        if nonfinite not in ("error", "pass"):
            raise InvalidValueError("nonfinite", nonfinite, "'error' or 'pass'")
        self.seed, self.noise_seed = seed, seed
        self.nonfinite: NonFinite = nonfinite
        self.min_compressed_values = min_compressed_values
        """Number of values below which a piece is sent uncompressed."""
        self._times: dict[tuple[str, int], int] = {}

    # Methods that subclasses define.

    @classmethod
    def parse(cls, arguments: list[str], **options: Any) -> Self:
        """Return the compressor of a short form `name:argument/argument`; most take none."""
        if arguments:
            spec = f"{cls.name}:{'/'.join(arguments)}"
            raise SpecError(spec, "has an argument, but takes none", cls.name)
        return cls(**options)

    @property
    def spec(self) -> str:
        """Short form that makes this compressor: its name, unless it has arguments."""
        return self.name

    @abstractmethod
    def encode_section(
        self, values: Floats, residual: Floats | None, piece: Piece, draw: Draw, room: Bytes
    ) -> int:
        """Write the values into `room`, and return the number of bytes.

        With a residual, encode `values + residual`, and replace the residual by what was lost.
        Raise FloatingPointError if `detects_nonfinite` and a value is not finite. The residual must
        be finite then, but may have changed up to that value: nothing of this payload is sent.
        """

    @abstractmethod
    def decode_section(self, body: Bytes, out: Floats, *, add: bool, scale: float) -> None:
        """Write `scale` times the values in `body` to `out`, or, with `add`, add them to `out`.

        `body` may hold anything: raise PayloadError for bytes that no `encode_section` writes, and
        before allocating memory for them.
        """

    @abstractmethod
    def section_max_bytes(self, num_values: int) -> int:
        """Return an upper bound of the bytes of a section of this many values."""

    def section_expected_bytes(self, num_values: int) -> float:
        """Return the expected bytes of a section, by recent ones if they depend on the data."""
        return self.section_max_bytes(num_values)

    # Methods that all subclasses share.

    def encode(
        self, values: Tensor, layout: Layout | None = None, *, out: Tensor | None = None
    ) -> Payload:
        """Return the payload of the pieces of a flat vector; of the whole vector without a layout.

        With `out` (uint8, at least `max_bytes` long), the payload is written there.
        """
        return self.encode_with(values, layout, out=out, residuals=None)

    def encode_with(
        self,
        values: Tensor,
        layout: Layout | None,
        *,
        out: Tensor | None,
        residuals: "Residuals | None",
    ) -> Payload:
        """Encode as `encode` does, and keep what is lost in `residuals`."""
        flat = as_floats(values)
        layout = nameless(len(flat)) if layout is None else layout
        limit = self.max_bytes(len(flat), layout)
        buffer = torch.empty(limit, dtype=torch.uint8) if out is None else out
        if buffer.numel() < limit:
            raise InvalidValueError("len(out)", buffer.numel(), f"at least max_bytes, {limit}")
        writer = PayloadWriter(buffer.numpy(), self.code)
        for piece, whole in self._sections(layout):
            part = flat[piece.start : piece.stop]
            residual = None if residuals is None else residuals.of(piece)
            if whole:
                writer.raw_section(self._whole(part, residual, piece))
            else:
                self._encode_one(writer, part, residual, piece)
        length = len(writer.finish())
        return Payload(buffer[:length])

    def _whole(self, part: Floats, residual: Floats | None, piece: Piece) -> Floats:
        """Return the values of a piece that is sent uncompressed, with its residual."""
        values = part if residual is None else part + residual
        if self.nonfinite == "error":
            try:
                check_finite(values)
            except FloatingPointError:
                raise NonFiniteError(piece.name) from None
        if residual is not None:
            residual[:] = 0
        return values

    def _encode_one(
        self, writer: PayloadWriter, part: Floats, residual: Floats | None, piece: Piece
    ) -> None:
        try:
            if not self.detects_nonfinite:
                check_finite(part, residual)
            size = self.encode_section(part, residual, piece, self._draw(piece), writer.room())
        except FloatingPointError:
            if self.nonfinite == "error":
                raise NonFiniteError(piece.name) from None
            writer.raw_section(part)
            if residual is not None:
                residual[:] = 0
        else:
            writer.close_section(len(part), size)

    def decode(
        self,
        payload: Payload,
        out: Tensor,
        layout: Layout | None = None,
        *,
        add: bool = False,
        scale: float = 1.0,
    ) -> None:
        """Write `scale` times the encoded values to the same pieces of `out`, or add them there."""
        target = as_floats(out)
        layout = nameless(len(target)) if layout is None else layout
        num_values = sum(piece.num_values for piece in layout)
        expected = self._sections(layout)
        for section in sections(payload, code=self.code, num_values=num_values):
            piece, _ = next(expected, (None, False))
            if piece is None or section.num_values != piece.num_values:
                raise PayloadError("has other sections than the tensor has pieces")
            part = target[piece.start : piece.stop]
            if section.raw:
                take(section.body.view(np.float32), part, add, np.float32(scale))
            else:
                self.decode_section(section.body, part, add=add, scale=scale)
        if not shares_memory(out):
            out.copy_(torch.from_numpy(target).view_as(out))

    def max_bytes(self, num_values: int, layout: Layout | None = None) -> int:
        """Return an upper bound of the size of a payload: the size of receive buffers."""
        total = HEADER.size
        for piece, whole in self._sections(layout or nameless(num_values)):
            raw = 4 * piece.num_values
            most = raw if whole else self.section_max_bytes(piece.num_values)
            if self.nonfinite == "pass":
                most = max(most, raw)
            total += SECTION.size + padded(most)
        return total

    def expected_bytes(self, num_values: int, layout: Layout | None = None) -> float:
        """Return the expected size of a payload in bytes."""
        total: float = HEADER.size
        for piece, whole in self._sections(layout or nameless(num_values)):
            count = piece.num_values
            total += SECTION.size + (4 * count if whole else self.section_expected_bytes(count))
        return total

    def for_worker(self, index: int) -> Self:
        """Return a copy without state whose rounding differs by worker, shared choices do not."""
        fresh = copy.deepcopy(self)
        fresh.noise_seed = _hash64(f"{self.seed}/{index}")
        fresh._times = {}
        return fresh

    def state(self) -> State:
        """Return all that the next `encode` depends on, for checkpoints."""
        return {
            StateKey("times", name, offset): torch.tensor(count)
            for (name, offset), count in self._times.items()
        }

    def load_state(self, state: State) -> None:
        """Replace the state by one that `state` returned; keys of other kinds are ignored."""
        self._times = {
            (key.name, key.offset or 0): int(value)
            for key, value in state.items()
            if key.kind == "times"
        }

    def _draw(self, piece: Piece) -> Draw:
        """Return the seeds of the n-th encoding of a slice; they depend on nothing else."""
        times = self._times.get((piece.name, piece.offset), 0)
        self._times[piece.name, piece.offset] = times + 1
        where = f"{times}/{piece.offset}/{piece.name}"
        return Draw(_hash64(f"{self.seed}/{where}"), _hash64(f"{self.noise_seed}/noise/{where}"))

    def _sections(self, layout: Layout) -> Iterator[tuple[Piece, bool]]:
        """Yield pieces as they become sections, and whether each is sent uncompressed."""
        for piece in layout:
            whole = piece.num_values < self.min_compressed_values
            for start in range(piece.start, piece.stop, MAX_SECTION_VALUES):
                stop = min(start + MAX_SECTION_VALUES, piece.stop)
                offset = piece.offset + start - piece.start
                yield Piece(piece.name, piece.shape, offset, start, stop), whole


class SummableCompressor(SectionCompressor):
    """A compressor whose encoded vectors can be summed as they are, for example along a ring.

    Each vector becomes one dense tensor without header or sections. The tensors of all workers have
    equal length, and equal positions stand for the same values.
    """

    summable = True

    @abstractmethod
    def to_wire(
        self, values: Tensor, layout: Layout | None = None, *, residuals: "Residuals | None" = None
    ) -> Tensor:
        """Return the tensor to sum; `residuals` are used and replaced as in `encode_with`."""

    @abstractmethod
    def from_wire(self, wire: Tensor, out: Tensor, layout: Layout | None = None) -> None:
        """Decode a tensor or a sum of tensors, made by the last `to_wire` with that layout."""

    @abstractmethod
    def wire_bytes(self, num_values: int, layout: Layout | None = None) -> float:
        """Return the size of the tensor to sum in bytes."""


class Residuals(Protocol):
    """Storage for compression residuals, by parameter."""

    def of(self, piece: Piece) -> Floats:
        """Return the residual of a slice of a parameter, to be changed in place."""
        ...


def as_floats(values: Tensor) -> Floats:
    """Return the values as a flat float32 array, which shares their memory if it can."""
    return values.detach().reshape(-1).to("cpu", torch.float32).contiguous().numpy()


def shares_memory(out: Tensor) -> bool:
    """Return True if `as_floats(out)` shares the memory of `out`."""
    return out.device.type == "cpu" and out.dtype == torch.float32 and out.is_contiguous()


def _hash64(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
