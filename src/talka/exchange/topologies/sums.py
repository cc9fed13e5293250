"""Exchanges that sum encoded vectors on the way: ring, direct and tree.

Only for compressors whose encoded vectors can be summed. Others would have to decode and encode
again at every hop, and lose precision at every hop.
"""

from abc import abstractmethod
from typing import ClassVar, cast

from talka.channels.collectives.direct import direct_all_reduce
from talka.channels.collectives.port import Array, Port, Steps
from talka.channels.collectives.ring import ring_all_reduce
from talka.channels.collectives.tree import tree_all_reduce
from talka.compress import Compressor, Layout, Summable
from talka.errors import SpecError
from talka.exchange.call import Call
from talka.exchange.compressed import CompressedExchange
from talka.exchange.power_sgd import Codec
from talka.exchange.pricing.price import CodecRates
from talka.network import Cost, Network, all_reduce, two_phase
from talka.network import tree as tree_cost


class SumExchange(CompressedExchange):
    """The base class of ring, direct and tree, which sum one dense tensor per worker."""

    @staticmethod
    @abstractmethod
    def add_up(port: Port, array: Array) -> Steps:
        """Sum the tensors of all workers in place, with the same bits on each."""

    def steps(self, call: Call) -> Steps:
        worker = cast(Summable, self.worker)  # see check()
        with self.meter.timed("encode_s"):
            wire = worker.to_wire(call.values, call.layout)
            wire.mul_(1 / self.num_workers)  # before the sum, as DDP does: halves would overflow
        if self.num_workers > 1 and wire.numel():
            yield from self.add_up(call, wire)
        with self.meter.timed("decode_s"):
            worker.from_wire(wire, call.values, call.layout)

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
    """Sums go round a ring of all workers."""

    name: ClassVar[str] = "ring"
    add_up = staticmethod(ring_all_reduce)

    @classmethod
    def cost(cls, network: Network, payload_bytes: float, dense_bytes: float) -> Cost:
        return all_reduce(network, payload_bytes)


class Direct(SumExchange):
    """Two hops: each worker sums one slice, and sends it to all others."""

    name: ClassVar[str] = "direct"
    add_up = staticmethod(direct_all_reduce)

    @classmethod
    def cost(cls, network: Network, payload_bytes: float, dense_bytes: float) -> Cost:
        return two_phase(network, payload_bytes)


class Tree(SumExchange):
    """Sums go up a binomial tree, and the total comes down."""

    name: ClassVar[str] = "tree"
    add_up = staticmethod(tree_all_reduce)

    @classmethod
    def cost(cls, network: Network, payload_bytes: float, dense_bytes: float) -> Cost:
        return tree_cost(network, payload_bytes)
