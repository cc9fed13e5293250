"""Hierarchical: sum inside each host first, over memory; then two-phase between hosts alone.

Only one payload a host travels, however many workers it has. The first worker of a host is its
leader; it alone keeps residuals.
"""

from typing import ClassVar

from talka.exchange.base import Call
from talka.exchange.conveyor import Awaited, Steps
from talka.exchange.links.hosts import hosts_of_all
from talka.exchange.topologies.two_phase import TwoPhase
from talka.network import Cost, Network
from talka.network import hierarchical as hierarchical_cost


class Hierarchical(TwoPhase):
    name: ClassVar[str] = "hierarchical"

    def prepare(self) -> None:
        hosts = hosts_of_all(self.group)
        self.members = [hosts.index(host) for host in dict.fromkeys(hosts)]
        self.local = [rank for rank, host in enumerate(hosts) if host == hosts[self.rank]]
        self.prepare_sides()

    def steps(self, call: Call) -> Steps:
        if not call.values.numel():
            return
        leader, *others = self.local
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
