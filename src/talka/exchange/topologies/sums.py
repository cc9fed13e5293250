"""Exchanges that sum encoded vectors on the way: ring, direct and tree.

Only for compressors whose encoded vectors can be summed. Others would have to decode and encode
again at every hop, and lose precision at every hop.
"""

from abc import abstractmethod
from functools import cached_property
from typing import ClassVar, cast

import torch
import torch.distributed as dist
from torch import Tensor

from talka.compress import Compressor, Layout, Summable
from talka.errors import SpecError
from talka.exchange.call import Call
from talka.exchange.compressed import CompressedExchange
from talka.exchange.conveyor import Awaited, Steps
from talka.exchange.message import Message
from talka.exchange.power_sgd import Codec
from talka.exchange.pricing.price import CodecRates
from talka.network import Cost, Network, all_reduce, two_phase
from talka.network import tree as tree_cost
from talka.network.patterns import binomial_tree


class SumExchange(CompressedExchange):
    """The base class of ring, direct and tree, which sum one dense tensor per worker."""

    def steps(self, call: Call) -> Steps:
        worker = cast(Summable, self.worker)  # see check()
        with self.meter.timed("encode_s"):
            wire = worker.to_wire(call.values, call.layout)
            wire.mul_(1 / self.num_workers)  # before the sum, as DDP does: halves would overflow
        if self.num_workers > 1 and wire.numel():
            yield from self.add_up(call, wire)
        with self.meter.timed("decode_s"):
            worker.from_wire(wire, call.values, call.layout)

    @abstractmethod
    def add_up(self, call: Call, wire: Tensor) -> Steps:
        """Sum the tensors of all workers in place, with the same bits on each."""

    @classmethod
    def payload_bytes(cls, compressor: Compressor, layout: Layout, network: Network) -> float:
        num_values = sum(piece.num_values for piece in layout)
        return cast(Summable, compressor).wire_bytes(num_values, layout)

    @classmethod
    def codec_s_per_value(cls, rates: CodecRates, network: Network) -> float:
        """Only convert: sums on the way are ignored, as for plain DDP."""
        return rates.convert_s

    @classmethod
    def check(cls, codec: Codec) -> None:
        super().check(codec)
        if not codec.summable:
            raise SpecError(
                codec.spec,
                f"cannot be summed while encoded, so {cls.name} cannot carry it",
                "none, fp16, bf16 or randomk there, or the exchange two-phase",
            )


class Ring(SumExchange):
    """All-reduce of gloo: sums go round a ring of all workers."""

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
    """All-reduce in two hops: each worker sums one slice, and sends it to all others."""

    name: ClassVar[str] = "direct"

    def add_up(self, call: Call, wire: Tensor) -> Steps:
        yield from add_up(call, wire)

    @classmethod
    def cost(cls, network: Network, payload_bytes: float, dense_bytes: float) -> Cost:
        return two_phase(network, payload_bytes)


def add_up(call: Call, values: Tensor, *, phase: int = 0) -> Steps:
    """Sum the values of all workers in place, with the same bits on each. Takes two phases.

    A sum is received into the slice that was sent: it arrives only after its owner has received
    that slice. All receives are posted at the start, so no sender waits for its receiver.
    """
    slices = torch.tensor_split(values, call.num_workers)
    own_slice = slices[call.rank]
    others = [rank for rank in range(call.num_workers) if rank != call.rank and values.numel()]
    parts = {rank: torch.empty_like(own_slice) for rank in others if own_slice.numel()}
    arriving = [call.receive(part, rank, phase=phase) for rank, part in parts.items()]
    others_slices = [(slices[rank], rank) for rank in others if slices[rank].numel()]
    sums = [call.receive(part, rank, phase=phase + 1) for part, rank in others_slices]
    sends = [call.send(part, rank, phase=phase) for part, rank in others_slices]
    yield arriving
    if parts:  # in the order of ranks, so that a sum does not depend on its owner
        parts[call.rank] = own_slice.clone()
        torch.add(parts[0], parts[1], out=own_slice)
        for rank in range(2, call.num_workers):
            own_slice += parts[rank]
    call.received(len(arriving) * own_slice.numel() * own_slice.element_size())
    sends += [call.send(own_slice, rank, phase=phase + 1) for rank in others if parts]
    yield sums
    for part, _ in others_slices:
        call.received(part.numel() * part.element_size())
    yield sends


class Family:
    """Neighbours in a binomial tree: children are in the order in which their sums are added.

    >>> [(Family(rank, 4).parent, Family(rank, 4).children) for rank in range(4)]
    [(None, [1, 2]), (0, [3]), (0, []), (1, [])]
    """

    def __init__(self, rank: int, num_workers: int) -> None:
        pairs = [pair for pairs in binomial_tree(range(num_workers)) for pair in pairs]
        self.parent = next((above for above, below in pairs if below == rank), None)
        self.children = [below for above, below in pairs if above == rank]


class Tree(SumExchange):
    """Sums go up a binomial tree, and the total comes down."""

    name: ClassVar[str] = "tree"

    @cached_property
    def family(self) -> Family:
        """Neighbours of this worker in the tree."""
        return Family(self.rank, self.num_workers)

    def add_up(self, call: Call, wire: Tensor) -> Steps:
        """Sum up and down the tree.

        The total is received into the tensor that was sent up: it arrives only after the parent has
        received that tensor.
        """
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
