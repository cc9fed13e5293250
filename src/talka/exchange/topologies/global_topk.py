"""Global top-k: sums go up a tree, and only the K largest of each sum go on (K5).

What a sum had besides stays in the residuals of the worker that cut it off, and takes part in its
next sum. The result has K values however many workers there are, so 2 log2 P payloads are all that
anybody's link carries.
"""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from talka.compress import ErrorFeedback, Payload
from talka.errors import SpecError
from talka.exchange.base import AnyCompressor, Call, CompressedExchange
from talka.exchange.conveyor import Awaited, Steps
from talka.exchange.topologies.sums import Family
from talka.network import Cost, Network
from talka.network import tree as tree_cost


class GlobalTopK(CompressedExchange):
    name: ClassVar[str] = "global-topk"

    @classmethod
    def check(cls, compressor: AnyCompressor) -> None:
        inner = compressor.inner if isinstance(compressor, ErrorFeedback) else compressor
        if inner.name != "topk":
            raise SpecError(
                compressor.spec, "has no K largest values", "topk:0.01+ef with this exchange"
            )

    def prepare(self) -> None:
        self.worker = self.compressor.for_worker(self.rank)
        self.summer = self.compressor.for_worker(self.num_workers + self.rank)
        self.family = Family(self.rank, self.num_workers)

    def steps(self, call: Call) -> Steps:
        if not call.values.numel():
            return
        size = self.worker.max_bytes(call.values.numel(), call.layout)
        arrived = {child: call.buffer(size) for child in self.family.children}
        awaited = [call.receive(data, child) for child, data in arrived.items()]
        mine = call.encode(self.worker, call.values, call.layout).data
        yield awaited

        if arrived:
            call.decode(self.worker, mine, call.layout)
            for child in self.family.children:  # a fixed order of additions
                call.received(call.decode(self.worker, arrived[child], call.layout, add=True))
            mine = call.encode(self.summer, call.values, call.layout).data
        sends: list[Awaited] = []
        if self.family.parent is not None:
            sends.append(call.send(mine, self.family.parent))
            mine = call.buffer(size)
            yield [call.receive(mine, self.family.parent, phase=1)]
            mine = mine[: Payload(mine).header.num_bytes]
            call.received(mine.numel())
        sends += [call.send(mine, child, phase=1) for child in reversed(self.family.children)]
        call.decode(self.worker, mine, call.layout, scale=1 / self.num_workers)
        yield sends

    @classmethod
    def cost(cls, network: Network, payload_bytes: float, dense_bytes: float) -> Cost:
        return tree_cost(network, payload_bytes)

    def merged_owners(self, total: Tensor, states: Sequence[dict[str, Tensor]]) -> Tensor:
        """What sums cut off, all at the root now; sums are divided by another number there."""
        share = self.num_workers / len(states)
        return total * share if self.rank == 0 else torch.zeros_like(total)

    def sides(self) -> dict[str, AnyCompressor]:
        return {"worker": self.worker, "owner": self.summer}
