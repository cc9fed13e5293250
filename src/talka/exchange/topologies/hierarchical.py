"""Hierarchical: sum inside each host first, over memory; then two-phase between hosts.

Only one payload per host is sent over the network, for any number of workers on it. The first
worker of a host is its leader; only leaders keep residuals.
"""

from collections.abc import Sequence
from typing import ClassVar

from talka.channels.collectives.port import Awaited, Steps
from talka.exchange.call import Call
from talka.exchange.links.hosts import hosts_of_all
from talka.exchange.power_sgd import Codec
from talka.exchange.topologies.two_phase import TwoPhase
from talka.exchange.transport import Members
from talka.network import Cost, Network
from talka.network import hierarchical as hierarchical_cost


class Hierarchical(TwoPhase):
    """Two-phase between the leaders of hosts, with plain sums inside each host."""

    name: ClassVar[str] = "hierarchical"

    def __init__(
        self,
        codec: Codec,
        *,
        group: Members = None,
        momentum: float = 0.0,
    ) -> None:
        super().__init__(codec, group=group, momentum=momentum)
        hosts = hosts_of_all(self.channels)
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
        if self.rank != leader:
            yield [call.send(call.values, leader, phase=2)]
            yield [call.receive(call.values, leader, phase=3)]
            return
        arrived = [call.scratch(call.values) for _ in others]
        yield [
            call.receive(data, rank, phase=2) for data, rank in zip(arrived, others, strict=True)
        ]
        for data in arrived:
            call.combine(call.values, data)
        yield from self.reduce_between_members(call, self.num_workers)
        sends: list[Awaited] = [call.send(call.values, rank, phase=3) for rank in others]
        yield sends

    @classmethod
    def cost(cls, network: Network, payload_bytes: float, dense_bytes: float) -> Cost:
        return hierarchical_cost(network, payload_bytes, inner_bytes=dense_bytes)

    @classmethod
    def num_owners(cls, network: Network) -> int:
        return len(network.links)
