"""All-gather: each worker sends its payload to all others, and computes the average itself.

One hop and no second encoding; but P-1 payloads leave each worker, so it is slow beyond a few
workers.
"""

from typing import ClassVar

from torch import Tensor

from talka.channels.collectives.port import Awaited, Steps
from talka.exchange.call import Call
from talka.exchange.compressed import CompressedExchange
from talka.exchange.pricing.price import CodecRates
from talka.network import Cost, Network, all_gather


class AllGather(CompressedExchange):
    """Sends the payload of each worker to all others."""

    name: ClassVar[str] = "all-gather"

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

        for rank in range(self.num_workers):  # all workers add in the same order
            call.decode(self.worker, payloads[rank], call.layout, add=rank > 0)
        call.values.div_(self.num_workers)
        yield sends

    @classmethod
    def cost(cls, network: Network, payload_bytes: float, dense_bytes: float) -> Cost:
        return all_gather(network, payload_bytes)

    @classmethod
    def codec_s_per_value(cls, rates: CodecRates, network: Network) -> float:
        """Encode once, and decode every worker's payload."""
        return rates.encode_s + network.num_workers * rates.decode_s
