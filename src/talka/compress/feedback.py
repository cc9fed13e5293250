"""Error feedback: what compression lost is added to what this worker says next.

Karimireddy et al., arXiv:1901.09847. Each worker keeps its own residuals, by parameter name and at
full length, so they survive new buckets, other chunks and checkpoints.
"""

from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from talka.compress.base import SectionCompressor, SummableCompressor
from talka.compress.layout import Layout, Piece
from talka.compress.payload import Floats, Payload
from talka.errors import InvalidValueError, SpecError


class ErrorFeedback:
    """A compressor around another one, which has to contract."""

    def __init__(self, inner: SectionCompressor) -> None:
        if not inner.contracts:
            raise SpecError(
                f"{inner.spec}+ef",
                "would gather errors without bound: what this compressor loses can be larger than "
                "what it is given",
                "feedback around one that contracts, such as uniform:3/max/512+ef, onebit+ef or "
                f"topk:0.01+ef; or {inner.spec} alone",
            )
        self.inner = inner
        inner.fed_back = True
        self.residuals: dict[str, Tensor] = {}

    @property
    def spec(self) -> str:
        return f"{self.inner.spec}+ef"

    def encode(
        self, values: Tensor, layout: Layout | None = None, *, out: Tensor | None = None
    ) -> Payload:
        return self.inner.encode_with(values, layout, out=out, residuals=self)

    def decode(
        self,
        payload: Payload,
        out: Tensor,
        layout: Layout | None = None,
        *,
        add: bool = False,
        scale: float = 1.0,
    ) -> None:
        self.inner.decode(payload, out, layout, add=add, scale=scale)

    def expected_bytes(self, num_values: int, layout: Layout | None = None) -> float:
        return self.inner.expected_bytes(num_values, layout)

    def max_bytes(self, num_values: int, layout: Layout | None = None) -> int:
        return self.inner.max_bytes(num_values, layout)

    @property
    def summable(self) -> bool:
        return self.inner.summable

    def to_wire(self, values: Tensor, layout: Layout | None = None) -> Tensor:
        """What is to be summed, with what was lost before; see `SummableCompressor`."""
        return self._additive.to_wire(values, layout, residuals=self)

    def from_wire(self, wire: Tensor, out: Tensor, layout: Layout | None = None) -> None:
        self._additive.from_wire(wire, out, layout)

    @property
    def _additive(self) -> SummableCompressor:
        if not isinstance(self.inner, SummableCompressor):
            raise InvalidValueError("compressor", self.spec, "one that adds up, such as fp16+ef")
        return self.inner

    def for_worker(self, index: int) -> Self:
        return type(self)(self.inner.for_worker(index))

    def of(self, piece: Piece) -> Floats:
        """The residual of a slice of a parameter, in place."""
        residual = self.residuals.get(piece.name)
        if residual is None:
            # numpy's zeros: memory that no chunk touches is not taken, and what is, in large pages.
            residual = torch.from_numpy(np.zeros(piece.full_length, np.float32))
            self.residuals[piece.name] = residual
        stop = piece.offset + piece.num_values
        if stop > residual.numel():
            allowed = f"at most {residual.numel()}, the length that it had before"
            raise InvalidValueError(f"length of {piece.name!r}", stop, allowed)
        floats: np.ndarray[Any, np.dtype[np.float32]] = residual.numpy()
        return floats[piece.offset : stop]

    def rescale(self, factor: float) -> None:
        """Residuals in another unit: with a new learning rate, times the old rate over the new."""
        for residual in self.residuals.values():
            residual.mul_(factor)

    def state(self) -> dict[str, Tensor]:
        kept = {f"residual/{name}": value for name, value in self.residuals.items()}
        return {**kept, **self.inner.state()}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.residuals = {
            name: value.clone()
            for key, value in state.items()
            for kind, _, name in [key.partition("/")]
            if kind == "residual"
        }
        self.inner.load_state(state)
