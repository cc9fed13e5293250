"""Through a master: worker 0 owns everything. Its link carries 2 (P-1) payloads: for comparison."""

from typing import ClassVar

from talka.compress import Layout
from talka.exchange.two_phase import TwoPhase
from talka.network import Cost, Network
from talka.network import master as master_cost


class Master(TwoPhase):
    name: ClassVar[str] = "master"

    @classmethod
    def shares_of(cls, layout: Layout, num_owners: int) -> list[Layout]:
        return [layout, *[()] * (num_owners - 1)]

    @classmethod
    def cost(cls, network: Network, payload_bytes: float, dense_bytes: float) -> Cost:
        return master_cost(network, payload_bytes)
