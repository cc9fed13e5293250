"""A tree: sums go up to worker 0 and come down again, log2 P hops each way. For small vectors."""

from typing import ClassVar

import torch
from torch import Tensor

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

    def add_up(self, call: Call, wire: Tensor) -> Steps:
        """The sum arrives where a part of it was sent from: only after the parent has that."""
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
            yield [call.receive(wire, parent, phase=1)]
            call.received(num_bytes)
        sends += [call.send(wire, child, phase=1) for child in reversed(self.family.children)]
        yield sends

    @classmethod
    def cost(cls, network: Network, payload_bytes: float, dense_bytes: float) -> Cost:
        return tree_cost(network, payload_bytes)
