"""Everybody to everybody: each worker's payload goes to all, each averages for itself.

One hop, no second encoding; but P-1 payloads leave every worker, so it loses beyond a few.
"""

from typing import ClassVar

from torch import Tensor

from talka.exchange.base import AnyCompressor, Call, CompressedExchange
from talka.exchange.conveyor import Awaited, Steps
from talka.network import Cost, Network, everybody


class AllGather(CompressedExchange):
    name: ClassVar[str] = "all-gather"

    def prepare(self) -> None:
        self.worker = self.compressor.for_worker(self.rank)

    def steps(self, call: Call) -> Steps:
        if not call.values.numel():
            return
        others = [(self.rank + step) % self.num_workers for step in range(1, self.num_workers)]
        size = self.worker.max_bytes(call.values.numel(), call.layout)
        payloads: dict[int, Tensor] = {}
        awaited: list[Awaited] = []
        for rank in others:
            payloads[rank] = call.buffer(size)
            awaited.append(call.receive(payloads[rank], rank))
        payloads[self.rank] = call.encode(self.worker, call.values, call.layout).data
        sends = [call.send(payloads[self.rank], rank) for rank in others]
        yield awaited

        for rank in range(self.num_workers):  # the order of additions is the same everywhere
            num_bytes = call.decode(self.worker, payloads[rank], call.layout, add=rank > 0)
            call.received(num_bytes if rank != self.rank else 0)
        call.values.div_(self.num_workers)
        yield sends

    @classmethod
    def cost(cls, network: Network, payload_bytes: float, dense_bytes: float) -> Cost:
        return everybody(network, payload_bytes)

    def sides(self) -> dict[str, AnyCompressor]:
        return {"worker": self.worker}
