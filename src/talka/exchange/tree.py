"""A tree: sums go up to worker 0 and come down again, log2 P hops each way. For small vectors."""

from typing import ClassVar

import torch

from talka.exchange.additive import AddsUp
from talka.exchange.base import Call
from talka.exchange.conveyor import Awaited, Steps
from talka.exchange.family import Family
from talka.network import Cost, Network
from talka.network import tree as tree_cost


class Tree(AddsUp):
    name: ClassVar[str] = "tree"

    def prepare(self) -> None:
        super().prepare()
        self.family = Family(self.rank, self.num_workers)

    def steps(self, call: Call) -> Steps:
        with self.meter.timed("encode_s"):
            wire = self.adder.wire(call.values, call.layout)
            wire.mul_(1 / self.num_workers)  # before the sum, as DDP does: halves would overflow
        if not wire.numel():
            return
        num_bytes, parent = wire.numel() * wire.element_size(), self.family.parent
        arrived = {child: torch.empty_like(wire) for child in self.family.children}
        yield [call.receive(data, child) for child, data in arrived.items()]
        with self.meter.timed("decode_s"):
            for child in self.family.children:
                wire += arrived[child]
                call.received(num_bytes)
        sends: list[Awaited] = []
        if parent is not None:
            sends.append(call.send(wire, parent))
            total = torch.empty_like(wire)
            yield [call.receive(total, parent, phase=1)]
            call.received(num_bytes)
        else:
            total = wire
        sends += [call.send(total, child, phase=1) for child in reversed(self.family.children)]
        with self.meter.timed("decode_s"):
            self.adder.unwire(total, call.values, call.layout)
        yield sends

    @classmethod
    def cost(cls, network: Network, payload_bytes: float, dense_bytes: float) -> Cost:
        return tree_cost(network, payload_bytes)
