"""The base class of none, fp16 and bf16: tensors of their type, which are summed value by value."""

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from talka.compress.base import Residuals, SummableCompressor, as_floats
from talka.compress.layout import Layout, nameless
from talka.compress.payload import Floats
from talka.errors import NonFiniteError


class Dense(SummableCompressor):
    """A compressor that sends one value of `wire_type` per value."""

    wire_type: ClassVar[torch.dtype]

    @abstractmethod
    def fill(self, values: Floats, residual: Floats | None, wire: Tensor) -> None:
        """Encode as `encode_section` does, but into a tensor of `wire_type`."""

    def to_wire(
        self, values: Tensor, layout: Layout | None = None, *, residuals: Residuals | None = None
    ) -> Tensor:
        flat = as_floats(values)
        wire = torch.empty(len(flat), dtype=self.wire_type)
        for piece in nameless(len(flat)) if layout is None else layout:
            part = flat[piece.start : piece.stop]
            residual = None if residuals is None else residuals.of(piece)
            try:
                self.fill(part, residual, wire[piece.start : piece.stop])
            except FloatingPointError:
                if self.nonfinite == "error":
                    raise NonFiniteError(piece.name) from None
                wire[piece.start : piece.stop] = self._converted(part)
                if residual is not None:
                    residual[:] = 0
        return wire

    def from_wire(self, wire: Tensor, out: Tensor, layout: Layout | None = None) -> None:
        out.copy_(wire.view_as(out))

    def wire_bytes(self, num_values: int, layout: Layout | None = None) -> float:
        return num_values * self.wire_type.itemsize

    def _converted(self, values: Floats) -> Tensor:
        """Convert values of which some are not finite; finite values stay finite."""
        floats = torch.from_numpy(values)
        limit = torch.finfo(self.wire_type).max
        clamped = torch.where(floats.isfinite(), floats.clamp(-limit, limit), floats)
        return clamped.to(self.wire_type)
