"""Exchanges that sum payloads on the way: ring, direct and tree.

Only for payloads that can be added in their wire format. Anything else would have to be encoded again
at every hop, and lose precision at every hop.
"""

from abc import abstractmethod
from typing import ClassVar

import torch
import torch.distributed as dist
from torch import Tensor

from talka.compress import ErrorFeedback, SummableCompressor
from talka.errors import SpecError
from talka.exchange.base import AnyCompressor, Call
from talka.exchange.conveyor import Awaited, Steps
from talka.exchange.message import Message
from talka.exchange.topologies.all_gather import AllGather
from talka.network import Cost, Network, all_reduce, two_phase
from talka.network import tree as tree_cost
from talka.network.patterns import binomial_tree


class SumExchange(AllGather):
    """What ring and tree have in common: one side with residuals, dense tensors on the wire."""

    def prepare(self) -> None:
        super().prepare()
        assert isinstance(self.worker, SummableCompressor | ErrorFeedback), (
            "check() lets nothing else pass"
        )
        self.adder = self.worker

    def steps(self, call: Call) -> Steps:
        with self.meter.timed("encode_s"):
            wire = self.adder.to_wire(call.values, call.layout)
            wire.mul_(1 / self.num_workers)  # before the sum, as DDP does: halves would overflow
        if self.num_workers > 1 and wire.numel():
            yield from self.add_up(call, wire)
        with self.meter.timed("decode_s"):
            self.adder.from_wire(wire, call.values, call.layout)

    @abstractmethod
    def add_up(self, call: Call, wire: Tensor) -> Steps:
        """The sum of all workers' tensors, in place, with the same bits everywhere."""

    @classmethod
    def check(cls, compressor: AnyCompressor) -> None:
        inner = compressor.inner if isinstance(compressor, ErrorFeedback) else compressor
        if not isinstance(inner, SummableCompressor):
            raise SpecError(
                compressor.spec,
                f"does not add up in its own form, so it cannot go by {cls.name}",
                "none, fp16, bf16 or randomk there, or the exchange two-phase",
            )


class Ring(SumExchange):
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


class Direct(SumExchange):
    name: ClassVar[str] = "direct"

    def add_up(self, call: Call, wire: Tensor) -> Steps:
        yield from add_up(call, wire)

    @classmethod
    def cost(cls, network: Network, payload_bytes: float, dense_bytes: float) -> Cost:
        return two_phase(network, payload_bytes)


def add_up(call: Call, values: Tensor, *, phase: int = 0) -> Steps:
    """The sum of all workers' values, in place, with the same bits everywhere. Takes two phases.

    Sums are received where the parts they were made of were sent from: a sum arrives only after
    its owner has the part. All receives are posted at once, so no sender has to ask first.
    """
    slices = torch.tensor_split(values, call.num_workers)
    mine = slices[call.rank]
    others = [rank for rank in range(call.num_workers) if rank != call.rank and values.numel()]
    parts = {rank: torch.empty_like(mine) for rank in others if mine.numel()}
    arriving = [call.receive(part, rank, phase=phase) for rank, part in parts.items()]
    owned = [(slices[rank], rank) for rank in others if slices[rank].numel()]
    sums = [call.receive(part, rank, phase=phase + 1) for part, rank in owned]
    sends = [call.send(part, rank, phase=phase) for part, rank in owned]
    yield arriving
    if parts:  # in the order of ranks, so that a sum does not depend on who owns it
        parts[call.rank] = mine.clone()
        torch.add(parts[0], parts[1], out=mine)
        for rank in range(2, call.num_workers):
            mine += parts[rank]
    call.received(len(arriving) * mine.numel() * mine.element_size())
    sends += [call.send(mine, rank, phase=phase + 1) for rank in others if parts]
    yield sums
    for part, _ in owned:
        call.received(part.numel() * part.element_size())
    yield sends


class Family:
    """The parent, and the children in the order in which their sums are added.

    >>> [(Family(rank, 4).parent, Family(rank, 4).children) for rank in range(4)]
    [(None, [1, 2]), (0, [3]), (0, []), (1, [])]
    """

    def __init__(self, rank: int, num_workers: int) -> None:
        pairs = [pair for pairs in binomial_tree(range(num_workers)) for pair in pairs]
        self.parent = next((above for above, below in pairs if below == rank), None)
        self.children = [below for above, below in pairs if above == rank]


class Tree(SumExchange):
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
