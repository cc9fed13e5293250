"""Exchanges that add up on the way: only for payloads that add up in their own form.

Anything else would have to be encoded again at every hop, and lose at every hop.
"""

from abc import abstractmethod

from torch import Tensor

from talka.compress import Additive, ErrorFeedback
from talka.errors import SpecError
from talka.exchange.all_gather import AllGather
from talka.exchange.base import AnyCompressor, Call
from talka.exchange.conveyor import Steps


class AddsUp(AllGather):
    """What ring and tree have in common: one side with residuals, dense tensors on the wire."""

    def prepare(self) -> None:
        super().prepare()
        assert isinstance(self.worker, Additive | ErrorFeedback), "check() lets nothing else pass"
        self.adder = self.worker

    def steps(self, call: Call) -> Steps:
        with self.meter.timed("encode_s"):
            wire = self.adder.wire(call.values, call.layout)
            wire.mul_(1 / self.num_workers)  # before the sum, as DDP does: halves would overflow
        if self.num_workers > 1 and wire.numel():
            yield from self.add_up(call, wire)
        with self.meter.timed("decode_s"):
            self.adder.unwire(wire, call.values, call.layout)

    @abstractmethod
    def add_up(self, call: Call, wire: Tensor) -> Steps:
        """The sum of all workers' tensors, in place, with the same bits everywhere."""

    @classmethod
    def check(cls, compressor: AnyCompressor) -> None:
        inner = compressor.inner if isinstance(compressor, ErrorFeedback) else compressor
        if not isinstance(inner, Additive):
            raise SpecError(
                compressor.spec,
                f"does not add up in its own form, so it cannot go by {cls.name}",
                "none, fp16, bf16 or randomk there, or the exchange two-phase",
            )
