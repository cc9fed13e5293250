"""Global top-k: sums go up a tree, and only the K largest values of each sum are sent on (K5).

The other values of a sum stay in the residuals of the worker that removed them, and are part of its
next sum. The result has K values for any number of workers, so no link carries more than 2 log2 P
payloads.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from talka.channels.collectives.port import Awaited, Steps
from talka.channels.collectives.tree import Family
from talka.compress import Payload, State
from talka.errors import SpecError
from talka.exchange.call import Call
from talka.exchange.compressed import CompressedExchange
from talka.exchange.power_sgd import Codec
from talka.exchange.pricing.price import CodecRates
from talka.network import Cost, Network
from talka.network import tree as tree_cost


class GlobalTopK(CompressedExchange):
    """Sums the K largest values of all workers up a tree, and sends the K largest sums down."""

    name: ClassVar[str] = "global-topk"
    encodes_twice: ClassVar[bool] = True

    @classmethod
    def check(cls, codec: Codec) -> None:
        super().check(codec)
        if not codec.keeps_largest:
            raise SpecError(
                codec.spec,
                "does not keep the K largest values, as global-topk requires",
                "topk:0.01+ef with this exchange",
            )

    @cached_property
    def family(self) -> Family:
        """Neighbours of this worker in the tree."""
        return Family(self.rank, self.num_workers)

    def steps(self, call: Call) -> Steps:
        if not call.values.numel():
            return
        size = self.worker.max_bytes(call.values.numel(), call.layout)
        arrived = {child: call.buffer(size) for child in self.family.children}
        awaited = [call.receive(data, child) for child, data in arrived.items()]
        payload = call.encode(self.worker, call.values, call.layout).data
        yield awaited

        if arrived:
            call.decode(self.worker, payload, call.layout)
            for child in self.family.children:  # a fixed order of additions
                call.decode(self.worker, arrived[child], call.layout, add=True)
            payload = call.encode(self.owner, call.values, call.layout).data
        sends: list[Awaited] = []
        if self.family.parent is not None:
            sends.append(call.send(payload, self.family.parent))
            payload = call.buffer(size)
            yield [call.receive(payload, self.family.parent, phase=1)]
            payload = payload[: Payload(payload).header.num_bytes]
        sends += [call.send(payload, child, phase=1) for child in reversed(self.family.children)]
        call.decode(self.worker, payload, call.layout, scale=1 / self.num_workers)
        yield sends

    @classmethod
    def cost(cls, network: Network, payload_bytes: float, dense_bytes: float) -> Cost:
        return tree_cost(network, payload_bytes)

    @classmethod
    def codec_s_per_value(cls, rates: CodecRates, network: Network) -> float:
        """Follow the longest path up the tree, of L = ceil(log2 P) levels, then decode once.

        A worker with c children decodes c + 1 payloads and encodes their sum. On that path c is 1
        to L if P is a power of two; otherwise this is an upper bound.
        """
        levels = (network.num_workers - 1).bit_length()
        decodes = levels * (levels + 1) // 2 + levels + 1
        return (levels + 1) * rates.encode_s + decodes * rates.decode_s

    def merged_owners(self, total: Tensor, states: Sequence[State]) -> Tensor:
        """Return all residuals of sums at the root, scaled to the new number of workers."""
        share = self.num_workers / len(states)
        return total * share if self.rank == 0 else torch.zeros_like(total)
