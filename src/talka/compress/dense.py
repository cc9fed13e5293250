"""What adds up value by value: none, fp16 and bf16 travel as tensors of their own type."""

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from talka.compress.base import Residuals, SummableCompressor, as_floats
from talka.compress.layout import Layout, nameless
from talka.compress.payload import Floats
from talka.errors import NonFiniteError


class Dense(SummableCompressor):
    """One value of `wire_type` for each value."""

    wire_type: ClassVar[torch.dtype]

    @abstractmethod
    def fill(self, values: Floats, residual: Floats | None, wire: Tensor) -> None:
        """As `encode_section`, into a tensor of `wire_type`."""

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
                wire[piece.start : piece.stop] = self._as_they_are(part)
                if residual is not None:
                    residual[:] = 0
        return wire

    def from_wire(self, wire: Tensor, out: Tensor, layout: Layout | None = None) -> None:
        out.copy_(wire.view_as(out))

    def _as_they_are(self, values: Floats) -> Tensor:
        """With NaN and infinity, but finite stays finite."""
        given = torch.from_numpy(values)
        limit = torch.finfo(self.wire_type).max
        return torch.where(given.isfinite(), given.clamp(-limit, limit), given).to(self.wire_type)
