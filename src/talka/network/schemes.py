"""The table of all schemes that need nothing but a network and the bytes of a payload."""

from collections.abc import Callable
from dataclasses import dataclass

from talka.network import collectives, exchanges
from talka.network.cost import Cost
from talka.network.link import Network, share_of

CostFunction = Callable[[Network, float], Cost]


@dataclass(frozen=True, slots=True)
class Scheme:
    cost: CostFunction
    what: str
    averages: bool = False
    """At the end every worker has the average of all payloads."""


COLLECTIVES: dict[str, Scheme] = {
    "broadcast": Scheme(collectives.broadcast, "root's payload to all, in a tree"),
    "scatter": Scheme(collectives.scatter, "root's payload in P pieces, one to each"),
    "gather": Scheme(collectives.gather, "all payloads to the root"),
    "reduce": Scheme(collectives.reduce, "sum of all to the root, in a tree"),
    "all-gather": Scheme(collectives.all_gather, "all payloads to all, round a ring"),
    "reduce-scatter": Scheme(collectives.reduce_scatter, "sum of one piece to each, round a ring"),
    "all-reduce": Scheme(collectives.all_reduce, "sum of all to all, round a ring"),
    "all-to-all": Scheme(collectives.all_to_all, "everyone's payload in P pieces, one to each"),
    "barrier": Scheme(lambda network, _: collectives.barrier(network), "all wait for all"),
}

EXCHANGES: dict[str, Scheme] = {
    "ring": Scheme(collectives.all_reduce, "sums go round; payloads must add up", averages=True),
    "tree": Scheme(exchanges.tree, "sums go up, then down; payloads must add up", averages=True),
    "two-phase": Scheme(
        exchanges.two_phase, "chunks to their owners, averages back", averages=True
    ),
    "hierarchical": Scheme(
        exchanges.hierarchical, "sum inside a host, two phases between hosts", averages=True
    ),
    "all-gather": Scheme(collectives.all_gather, "all payloads round a ring", averages=True),
    "everybody": Scheme(exchanges.everybody, "all payloads straight to all", averages=True),
    "master": Scheme(exchanges.master, "all to worker 0, the average back", averages=True),
    "servers": Scheme(
        exchanges.separate_servers, "shares to as many server machines, and back", averages=True
    ),
    "global top-k": Scheme(exchanges.global_top_k, "up a tree, only the K largest of a sum go on"),
    "low rank": Scheme(
        lambda network, payload_bytes: exchanges.low_rank(
            network, share_of(payload_bytes, 2), share_of(payload_bytes, 2)
        ),
        "two factors, half of the payload each, one sum after another",
    ),
    "gossip": Scheme(exchanges.gossip, "to the two neighbours in a ring, one round"),
}


def cheapest_average(network: Network, payload_bytes: float) -> str:
    """Name of the fastest exchange after which everyone has the average; of equals, the first.

    >>> from talka.network.link import Link
    >>> cheapest_average(Network.equal(Link(0.0001, 1e9), 8), 25_000_000)
    'two-phase'
    """
    names = [name for name, scheme in EXCHANGES.items() if scheme.averages]

    def seconds(name: str) -> float:
        exact = EXCHANGES[name].cost(network, payload_bytes).seconds
        return float(f"{exact:.9g}")  # the last bits depend on the order of additions

    return min(names, key=seconds)
