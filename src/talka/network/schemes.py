"""Tables of all schemes whose cost depends only on a network and the bytes of a payload.

An exchange has the name that it has in `talka.exchange` and in `explain train`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from talka.network import collectives, exchanges
from talka.network.cost import Cost
from talka.network.link import Network, share_of

CostFunction = Callable[[Network, float], Cost]


@dataclass(frozen=True, slots=True)
class Scheme:
    """A collective or an exchange, with its cost function."""

    cost: CostFunction
    what: str
    """One-line description for tables."""
    averages: bool = False
    """True if every worker has the average of all payloads in the end."""


COLLECTIVES: dict[str, Scheme] = {
    "broadcast": Scheme(collectives.broadcast, "root's payload to all, in a tree"),
    "scatter": Scheme(collectives.scatter, "root's payload in P pieces, one to each"),
    "gather": Scheme(collectives.gather, "all payloads to the root"),
    "reduce": Scheme(collectives.reduce, "sum of all to the root, in a tree"),
    "all-gather": Scheme(exchanges.all_gather, "all payloads directly to all"),
    "ring all-gather": Scheme(collectives.ring_all_gather, "all payloads to all, around a ring"),
    "reduce-scatter": Scheme(collectives.reduce_scatter, "sum of one piece to each, around a ring"),
    "all-reduce": Scheme(collectives.all_reduce, "sum of all to all, around a ring"),
    "all-to-all": Scheme(collectives.all_to_all, "each payload in P pieces, one to each"),
    "barrier": Scheme(lambda network, _: collectives.barrier(network), "wait for all workers"),
}

EXCHANGES: dict[str, Scheme] = {
    "ring": Scheme(collectives.all_reduce, "sum around a ring; summable payloads", averages=True),
    "tree": Scheme(exchanges.tree, "sum up a tree, then down; summable payloads", averages=True),
    "two-phase": Scheme(
        exchanges.two_phase, "chunks to their owners, averages back", averages=True
    ),
    "direct": Scheme(
        exchanges.two_phase, "two phases of plain sums; summable payloads", averages=True
    ),
    "hierarchical": Scheme(
        exchanges.hierarchical, "sum inside a host, two phases between hosts", averages=True
    ),
    "all-gather": Scheme(exchanges.all_gather, "all payloads directly to all", averages=True),
    "ring all-gather": Scheme(
        collectives.ring_all_gather, "all payloads around a ring", averages=True
    ),
    "master": Scheme(exchanges.master, "all to worker 0, the average back", averages=True),
    "servers": Scheme(
        exchanges.separate_servers, "shares to server machines, and back", averages=True
    ),
    "global-topk": Scheme(exchanges.global_top_k, "up a tree, only the K largest of each sum"),
    "low-rank": Scheme(
        lambda network, payload_bytes: exchanges.low_rank(
            network, share_of(payload_bytes, 2), share_of(payload_bytes, 2)
        ),
        "two factors, half of the payload each, one sum after another",
    ),
    "gossip": Scheme(exchanges.gossip, "to the two neighbours in a ring, one round"),
}


def cheapest_average(network: Network, payload_bytes: float) -> str:
    """Return the name of the fastest exchange that averages; the first of equally fast ones.

    >>> from talka.network.link import Link
    >>> cheapest_average(Network.equal(Link(0.0001, 1e9), 8), 25_000_000)
    'two-phase'
    """
    names = [name for name, scheme in EXCHANGES.items() if scheme.averages]

    def seconds(name: str) -> float:
        exact = EXCHANGES[name].cost(network, payload_bytes).seconds
        return float(f"{exact:.9g}")  # the last bits depend on the order of additions

    return min(names, key=seconds)
