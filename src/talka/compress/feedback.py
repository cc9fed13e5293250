"""Error feedback: add what compression lost to the next values of the same worker.

Karimireddy et al., arXiv:1901.09847. Each worker keeps its own residuals, by parameter name and at
full length, so they survive new buckets, other chunks and checkpoints.

A `SectionCompressor` adds residuals and computes the loss in the same pass as it encodes. For any
other compressor, this class adds the residual before encoding, and decodes the payload to see what
was lost: right for every compressor, at the price of one decoding per encoding.
"""

from typing import Any, Self, cast

import numpy as np
import torch
from torch import Tensor

from talka.compress.base import SectionCompressor, SummableCompressor, as_floats
from talka.compress.layout import Layout, Piece, nameless
from talka.compress.payload import Floats, Payload
from talka.compress.protocol import Compressor, NonFinite, Summable
from talka.compress.state_key import State, StateKey
from talka.errors import InvalidValueError, NonFiniteError, SpecError


class ErrorFeedback:
    """Wraps a compressor that contracts, and sends later what an encoding lost."""

    unbiased: bool = False
    keeps_residuals: bool = True

    def __init__(self, inner: Compressor) -> None:
        if inner.keeps_residuals:
            raise InvalidValueError("compressor", inner.spec, "one without error feedback")
        if not inner.contracts:
            raise SpecError(
                f"{inner.spec}+ef",
                "would accumulate errors without bound, since this compressor can lose more than "
                "it is given",
                "feedback around one that contracts, such as uniform:3/max/512+ef, onebit+ef or "
                f"topk:0.01+ef; or {inner.spec} alone",
            )
        self.inner = inner
        self.nonfinite: NonFinite = inner.nonfinite
        self.sparse: bool = inner.sparse
        self.contracts: bool = inner.contracts
        self.summable: bool = inner.summable
        self.safe_with_adam: bool = inner.safe_with_adam
        self.keeps_largest: bool = inner.keeps_largest
        if isinstance(inner, SectionCompressor):
            inner.has_feedback = True
        self.residuals: dict[str, Tensor] = {}

    @property
    def spec(self) -> str:
        return f"{self.inner.spec}+ef"

    def encode(
        self, values: Tensor, layout: Layout | None = None, *, out: Tensor | None = None
    ) -> Payload:
        """Encode the values plus their residuals, and keep what is lost."""
        if isinstance(self.inner, SectionCompressor):
            return self.inner.encode_with(values, layout, out=out, residuals=self)
        sums, layout = self._plus_residuals(values, layout)
        payload = self.inner.encode(sums, layout, out=out)
        decoded = torch.zeros_like(sums)
        self.inner.decode(payload, decoded, layout)
        self._keep(sums - decoded, layout)
        return payload

    def decode(
        self,
        payload: Payload,
        out: Tensor,
        layout: Layout | None = None,
        *,
        add: bool = False,
        scale: float = 1.0,
    ) -> None:
        """Decode as the inner compressor does."""
        self.inner.decode(payload, out, layout, add=add, scale=scale)

    def expected_bytes(self, num_values: int, layout: Layout | None = None) -> float:
        """Return the expected size of a payload in bytes."""
        return self.inner.expected_bytes(num_values, layout)

    def max_bytes(self, num_values: int, layout: Layout | None = None) -> int:
        """Return an upper bound of the size of a payload."""
        return self.inner.max_bytes(num_values, layout)

    def to_wire(self, values: Tensor, layout: Layout | None = None) -> Tensor:
        """Return the tensor to sum, of the values plus their residuals, and keep what is lost."""
        if isinstance(self.inner, SummableCompressor):
            return self.inner.to_wire(values, layout, residuals=self)
        inner = self._summable()
        sums, layout = self._plus_residuals(values, layout)
        wire = inner.to_wire(sums, layout)
        decoded = torch.zeros_like(sums)
        inner.from_wire(wire, decoded, layout)
        self._keep(sums - decoded, layout)
        return wire

    def from_wire(self, wire: Tensor, out: Tensor, layout: Layout | None = None) -> None:
        """Decode a sum of such tensors as the inner compressor does."""
        self._summable().from_wire(wire, out, layout)

    def wire_bytes(self, num_values: int, layout: Layout | None = None) -> float:
        """Return the size of the tensor to sum in bytes."""
        return self._summable().wire_bytes(num_values, layout)

    def _summable(self) -> Summable:
        if not self.inner.summable:
            raise InvalidValueError("compressor", self.spec, "one that is summable: fp16+ef")
        return cast(Summable, self.inner)

    def _plus_residuals(self, values: Tensor, layout: Layout | None) -> tuple[Tensor, Layout]:
        """Return a copy of the values with residuals, for compressors that do not add them.

        With nonfinite="pass", pieces that are not finite stay as they are.
        """
        sums = as_floats(values).copy()
        layout = nameless(len(sums)) if layout is None else layout
        for piece in layout:
            part = sums[piece.start : piece.stop]
            total = part + self.of(piece)
            if np.isfinite(total).all():
                part[:] = total
            elif self.nonfinite == "error":
                raise NonFiniteError(piece.name)
        return torch.from_numpy(sums), layout

    def _keep(self, lost: Tensor, layout: Layout) -> None:
        """Replace residuals; the loss of a piece that is not finite is dropped."""
        for piece in layout:
            part = lost[piece.start : piece.stop].numpy()
            self.of(piece)[:] = part if np.isfinite(part).all() else 0

    def for_worker(self, index: int) -> Self:
        """Return a copy without residuals around the inner compressor of worker `index`."""
        return type(self)(self.inner.for_worker(index))

    def of(self, piece: Piece) -> Floats:
        """Return the residual of a slice of a parameter, to be changed in place."""
        residual = self.residuals.get(piece.name)
        if residual is None:
            # numpy's zeros take no memory until they are written, and then in large pages.
            residual = torch.from_numpy(np.zeros(piece.full_length, np.float32))
            self.residuals[piece.name] = residual
        stop = piece.offset + piece.num_values
        if stop > residual.numel():
            allowed = f"at most {residual.numel()}, its length in former steps"
            raise InvalidValueError(f"length of {piece.name!r}", stop, allowed)
        floats: np.ndarray[Any, np.dtype[np.float32]] = residual.numpy()
        return floats[piece.offset : stop]

    def rescale(self, factor: float) -> None:
        """Multiply all residuals; for a new learning rate, by the old rate over the new one."""
        for residual in self.residuals.values():
            residual.mul_(factor)

    def state(self) -> State:
        """Return residuals and the state of the inner compressor."""
        kept = {StateKey("residual", name): value for name, value in self.residuals.items()}
        return {**kept, **self.inner.state()}

    def load_state(self, state: State) -> None:
        """Replace residuals and the state of the inner compressor."""
        self.residuals = {
            key.name: value.clone() for key, value in state.items() if key.kind == "residual"
        }
        self.inner.load_state(state)
