"""Hierarchical: sum inside each host first, over memory; then two-phase between hosts.

Only one payload per host is sent over the network, for any number of workers on it. The first
worker of a host is its leader; only leaders keep residuals.
"""

from collections.abc import Sequence
from typing import ClassVar

import torch.distributed as dist

from talka.exchange.call import Call
from talka.exchange.conveyor import Awaited, Steps
from talka.exchange.links.hosts import hosts_of_all
from talka.exchange.power_sgd import Codec
from talka.exchange.topologies.two_phase import TwoPhase
from talka.network import Cost, Network
from talka.network import hierarchical as hierarchical_cost


class Hierarchical(TwoPhase):
    """Two-phase between the leaders of hosts, with plain sums inside each host."""

    name: ClassVar[str] = "hierarchical"

    def __init__(
        self,
        codec: Codec,
        *,
        group: dist.ProcessGroup | None = None,
        momentum: float = 0.0,
    ) -> None:
        super().__init__(codec, group=group, momentum=momentum)
        hosts = hosts_of_all(self.group)
        self._leaders = [hosts.index(host) for host in dict.fromkeys(hosts)]
        self._local = [rank for rank, host in enumerate(hosts) if host == hosts[self.rank]]

    @property
    def members(self) -> Sequence[int]:
        """Ranks of the leaders of all hosts."""
        return self._leaders

    def steps(self, call: Call) -> Steps:
        if not call.values.numel():
            return
        leader, *others = self._local
        num_bytes = call.values.numel() * call.values.element_size()
        if self.rank != leader:
            yield [call.send(call.values, leader, phase=2)]
            yield [call.receive(call.values, leader, phase=3)]
            call.received(num_bytes)
            return
        arrived = [call.floats(call.values.numel()) for _ in others]
        yield [
            call.receive(data, rank, phase=2) for data, rank in zip(arrived, others, strict=True)
        ]
        with self.meter.timed("decode_s"):
            for data in arrived:
                call.values += data
                call.received(num_bytes)
        yield from self.reduce_between_members(call, self.num_workers)
        sends: list[Awaited] = [call.send(call.values, rank, phase=3) for rank in others]
        yield sends

    @classmethod
    def cost(cls, network: Network, payload_bytes: float, dense_bytes: float) -> Cost:
        return hierarchical_cost(network, payload_bytes, inner_bytes=dense_bytes)

    @classmethod
    def num_owners(cls, network: Network) -> int:
        return len(network.links)
