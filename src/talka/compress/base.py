"""What a compressor is: tensors in, bytes out; no ranks, no sockets.

A `Compressor` is what exchanges use. All of ours are `SectionCompressor`: the base class walks the layout,
lets small pieces travel whole, names tensors in errors and writes header and sections; a member says
how the values of ONE section become bytes, and back.
"""

import copy
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, Self

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
    Writer,
    padded,
    sections,
)
from talka.errors import InvalidValueError, NonFiniteError, PayloadError, SpecError

NonFinite = Literal["error", "pass"]


class Compressor(Protocol):
    """Makes a flat vector smaller for the wire."""

    def encode(
        self, values: Tensor, layout: Layout | None = None, *, out: Tensor | None = None
    ) -> Payload: ...

    def decode(
        self,
        payload: Payload,
        out: Tensor,
        layout: Layout | None = None,
        *,
        add: bool = False,
        scale: float = 1.0,
    ) -> None: ...

    def expected_bytes(self, num_values: int, layout: Layout | None = None) -> float: ...

    def max_bytes(self, num_values: int, layout: Layout | None = None) -> int: ...


@dataclass(frozen=True, slots=True)
class Draw:
    """What the random choices of one section depend on, besides the index of a value."""

    shared: int
    """64 bits that are the same on every worker: for choices that all have to make alike."""

    noise: int
    """64 bits of this worker alone: for rounding, where errors should cancel out."""


class SectionCompressor(ABC):
    """A compressor given by how it writes and reads one section."""

    name: ClassVar[str]
    code: ClassVar[int]
    """Stands in every payload; never used twice."""
    contracts: bool = False
    """What is lost is always a shrinking part of what was put in, so error feedback may be used."""
    unbiased: bool = False
    """The mean of many encodings is the value itself."""
    fed_back: bool = False
    """Error feedback is around it; a member may have other defaults then."""
    summable: ClassVar[bool] = False
    """Sums can be made of what travels: it is an `SummableCompressor`."""

    def __init__(
        self, *, seed: int = 0, nonfinite: NonFinite = "error", min_compressed_values: int = 0
    ) -> None:
        if nonfinite not in ("error", "pass"):
            raise InvalidValueError("nonfinite", nonfinite, "'error' or 'pass'")
        self.seed, self.noise_seed, self.nonfinite = seed, seed, nonfinite
        self.min_compressed_values = min_compressed_values
        """Pieces of fewer values travel as they are."""
        self._times: dict[tuple[str, int], int] = {}

    # What a member writes.

    @classmethod
    def parse(cls, arguments: list[str], **options: Any) -> Self:
        """The member that a short form names: `name:argument/argument`. Most take none."""
        if arguments:
            given = f"{cls.name}:{'/'.join(arguments)}"
            raise SpecError(given, "has an argument, where none is taken", cls.name)
        return cls(**options)

    @property
    @abstractmethod
    def spec(self) -> str:
        """The short form that makes this compressor."""

    @abstractmethod
    def encode_section(
        self, values: Floats, residual: Floats | None, piece: Piece, draw: Draw, room: Bytes
    ) -> int:
        """Write the values into `room`, return the number of bytes.

        With a residual, what is encoded is `values + residual`, and `residual` becomes what was
        lost. Raises FloatingPointError if a value is not finite; the residual may have been changed
        up to there, as nothing of this payload will be sent.
        """

    @abstractmethod
    def decode_section(self, body: Bytes, out: Floats, *, add: bool, scale: float) -> None:
        """`out` becomes (or, with `add`, grows by) `scale` times what `body` says.

        `body` may hold anything: PayloadError for what cannot be, before memory is taken.
        """

    @abstractmethod
    def section_max_bytes(self, num_values: int) -> int:
        """No section of so many values is longer."""

    def section_expected_bytes(self, num_values: int) -> float:
        """Data-dependent members say what the density last seen would make."""
        return self.section_max_bytes(num_values)

    # What all have in common.

    def encode(
        self, values: Tensor, layout: Layout | None = None, *, out: Tensor | None = None
    ) -> Payload:
        """The payload of the pieces of a flat vector, of all of it without a layout.

        It lies in `out` (uint8, at least `max_bytes` long) if that is given.
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
        flat = as_floats(values)
        layout = nameless(len(flat)) if layout is None else layout
        limit = self.max_bytes(len(flat), layout)
        buffer = torch.empty(limit, dtype=torch.uint8) if out is None else out
        if buffer.numel() < limit:
            raise InvalidValueError("len(out)", buffer.numel(), f"at least max_bytes, {limit}")
        writer = Writer(buffer.numpy(), self.code)
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
        """Return the values of a piece that travels whole; nothing of it is lost."""
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
        self, writer: Writer, part: Floats, residual: Floats | None, piece: Piece
    ) -> None:
        try:
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
        """Into (or, with `add`, onto) the pieces of a flat tensor that were encoded."""
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
        if not _shares_memory(out):
            out.copy_(torch.from_numpy(target).view_as(out))

    def max_bytes(self, num_values: int, layout: Layout | None = None) -> int:
        """A hard bound of payloads of such vectors: receive buffers are this big."""
        total = HEADER.size
        for piece, whole in self._sections(layout or nameless(num_values)):
            raw = 4 * piece.num_values
            most = raw if whole else self.section_max_bytes(piece.num_values)
            if self.nonfinite == "pass":
                most = max(most, raw)
            total += SECTION.size + padded(most)
        return total

    def expected_bytes(self, num_values: int, layout: Layout | None = None) -> float:
        """What a payload of such a vector will measure."""
        total: float = HEADER.size
        for piece, whole in self._sections(layout or nameless(num_values)):
            count = piece.num_values
            total += SECTION.size + (4 * count if whole else self.section_expected_bytes(count))
        return total

    def for_worker(self, index: int) -> Self:
        """A fresh copy whose rounding is worker `index`'s own; shared choices stay shared."""
        one = copy.deepcopy(self)
        one.noise_seed = _hash64(f"{self.seed}/{index}")
        one._times = {}
        return one

    def state(self) -> dict[str, Tensor]:
        """All that the next encode depends on, by name: what a checkpoint has to keep."""
        return {
            f"times/{offset}/{name}": torch.tensor(count)
            for (name, offset), count in self._times.items()
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        self._times = {}
        for key, value in state.items():
            kind, _, rest = key.partition("/")
            if kind == "times":
                offset, _, name = rest.partition("/")
                self._times[name, int(offset)] = int(value)

    def _draw(self, piece: Piece) -> Draw:
        """The n-th encoding of a slice draws alike wherever it happens, and never twice the same."""
        times = self._times.get((piece.name, piece.offset), 0)
        self._times[piece.name, piece.offset] = times + 1
        where = f"{times}/{piece.offset}/{piece.name}"
        return Draw(_hash64(f"{self.seed}/{where}"), _hash64(f"{self.noise_seed}/noise/{where}"))

    def _sections(self, layout: Layout) -> Iterator[tuple[Piece, bool]]:
        """Pieces as they become sections, and whether each travels whole."""
        for piece in layout:
            whole = piece.num_values < self.min_compressed_values
            for start in range(piece.start, piece.stop, MAX_SECTION_VALUES):
                stop = min(start + MAX_SECTION_VALUES, piece.stop)
                offset = piece.offset + start - piece.start
                yield Piece(piece.name, piece.shape, offset, start, stop), whole


class SummableCompressor(SectionCompressor):
    """A compressor whose coded values add up in their own form, so sums can go round a ring.

    What travels is one dense tensor without header or sections; all workers' ones have equal length
    and mean the same places.
    """

    summable = True

    @abstractmethod
    def to_wire(
        self, values: Tensor, layout: Layout | None = None, *, residuals: "Residuals | None" = None
    ) -> Tensor:
        """What is to be summed. With residuals, as `encode` has it."""

    @abstractmethod
    def from_wire(self, wire: Tensor, out: Tensor, layout: Layout | None = None) -> None:
        """`out` becomes what the (summed) tensor says, of the last `to_wire` with that layout."""


class Residuals(Protocol):
    """Where what was lost is kept."""

    def of(self, piece: Piece) -> Floats: ...


def as_floats(values: Tensor) -> Floats:
    return values.detach().reshape(-1).to("cpu", torch.float32).contiguous().numpy()


def _shares_memory(out: Tensor) -> bool:
    """What is written into `as_floats(out)` stands in `out` itself."""
    return out.device.type == "cpu" and out.dtype == torch.float32 and out.is_contiguous()


def _hash64(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
