"""A ring: torch.distributed's own all-reduce of what adds up in its own form."""

from typing import ClassVar

import torch.distributed as dist
from torch import Tensor

from talka.exchange.additive import AddsUp
from talka.exchange.base import Call
from talka.exchange.conveyor import Steps
from talka.exchange.message import Message
from talka.network import Cost, Network, all_reduce


class Ring(AddsUp):
    name: ClassVar[str] = "ring"

    def add_up(self, call: Call, wire: Tensor) -> Steps:
        travels = 2 * (self.num_workers - 1) * wire.numel() * wire.element_size()
        self.meter.sent_bytes += travels // self.num_workers
        self.meter.received_bytes += travels // self.num_workers
        neighbours = {(self.rank + step) % self.num_workers for step in (-1, 1)}
        ranks = sorted(self.global_ranks[rank] for rank in neighbours)
        yield [Message(lambda: dist.all_reduce(wire, group=self.group, async_op=True), ranks)]

    @classmethod
    def cost(cls, network: Network, payload_bytes: float, dense_bytes: float) -> Cost:
        return all_reduce(network, payload_bytes)
