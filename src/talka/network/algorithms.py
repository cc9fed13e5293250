"""Algorithms of collectives: several ways to reach the same result, each with its cost.

`talka.channels` runs them, and chooses the cheapest by this table. B is the bytes of one worker's
value; formulas are for equal links (latency a, B / rate = b).
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from talka.errors import UnknownNameError
from talka.network import collectives, exchanges
from talka.network.cost import Cost, Rounds, cost_of_rounds, no_cost
from talka.network.link import Network, check_bytes, share_of
from talka.units import format_bytes

CHUNK_BYTES: Final = 1 << 20
"""Longer values are sent in parts of this size where they are passed on as they arrive."""

_MIN_CHAIN_BYTES: Final = 1 << 16
_NUM_CHAIN_PARTS: Final = 16


def chain_part_bytes(payload_bytes: float) -> float:
    """Return the bytes of the parts that a chain passes on.

    >>> chain_part_bytes(1000), chain_part_bytes(1.6e6), chain_part_bytes(1e9)
    (65536, 100000.0, 1048576)
    """
    return max(_MIN_CHAIN_BYTES, min(CHUNK_BYTES, payload_bytes / _NUM_CHAIN_PARTS))


def direct_broadcast(network: Network, payload_bytes: float) -> Cost:
    """Send the root's payload to each worker: a + (P-1) b seconds, all from one port."""
    pairs = [(0, rank) for rank in range(1, network.num_workers)]
    cost = cost_of_rounds(network, [pairs], payload_bytes)
    return cost.because(f"(P-1) B = {format_bytes(cost.total_bytes)} from the root")


def chain_broadcast(network: Network, payload_bytes: float) -> Cost:
    """Pass the root's payload on in parts of c bytes: (P-1) a + b + (P-2) c / rate seconds.

    With unequal links, the slowest path sets the pace of all parts. The first bytes of the payload,
    and of each part, may pass as a burst. A worker handles two messages per part.
    """
    num_workers, size = network.num_workers, check_bytes(payload_bytes)
    if num_workers == 1:
        return no_cost(1)
    part = min(size, chain_part_bytes(size))
    paths = [network.path(rank, rank + 1) for rank in range(num_workers - 1)]
    slowest = min(path.rate_bits_per_s for path in paths)
    burst = min(path.burst_bytes for path in paths)
    later_s = 8 * max(0.0, size - max(part, burst)) / slowest
    overhead_s = (
        2
        * max(path.overhead_s for path in paths)
        * max(0, math.ceil(size / part) - 1 if part else 0)
    )
    if network.cores is not None:
        overhead_s *= max(1.0, (num_workers - 1) / network.cores.num_cores)
    seconds = sum(path.seconds(part) for path in paths) + max(later_s, overhead_s)
    return Cost(
        (*(size,) * (num_workers - 1), 0.0),
        (0.0, *(size,) * (num_workers - 1)),
        seconds,
        num_rounds=num_workers - 1,
        reason=f"B = {format_bytes(size)} from each worker to the next, in parts",
    )


def scattered_broadcast(network: Network, payload_bytes: float) -> Cost:
    """Send a piece to each worker, which sends it to the others: 2 a + b + (P-2)/(P-1) b seconds."""
    num_workers = network.num_workers
    if num_workers <= 2:
        return direct_broadcast(network, payload_bytes)
    piece = share_of(payload_bytes, num_workers - 1)
    rounds = Rounds(network)
    rounds.add([(0, rank) for rank in range(1, num_workers)], piece)
    rounds.add(list(itertools.permutations(range(1, num_workers), 2)), piece)
    return rounds.cost.because(
        f"B/(P-1) = {format_bytes(piece)} to each worker, and on to the others"
    )


def scattered_reduce(network: Network, payload_bytes: float) -> Cost:
    """Combine a slice at each worker, then gather them: 2 a + 2 (P-1)/P b seconds."""
    num_workers = network.num_workers
    piece, rounds = share_of(payload_bytes, num_workers), Rounds(network)
    rounds.add_all_pairs(piece)
    rounds.add([(rank, 0) for rank in range(1, num_workers)], piece)
    cost = rounds.cost
    return cost.because(f"slices of B/P = {format_bytes(piece)} to their owners, then to the root")


ALGORITHMS: Final[dict[str, dict[str, Callable[[Network, float], Cost]]]] = {
    "broadcast": {
        "direct": direct_broadcast,
        "tree": collectives.broadcast,
        "chain": chain_broadcast,
        "scattered": scattered_broadcast,
    },
    "reduce": {
        "direct": collectives.gather,
        "tree": collectives.reduce,
        "scattered": scattered_reduce,
    },
    "all_reduce": {
        "gathered": exchanges.all_gather,
        "direct": exchanges.two_phase,
        "ring": collectives.all_reduce,
        "tree": exchanges.tree,
    },
    "gather": {"direct": collectives.gather},
    "scatter": {"direct": collectives.scatter},
    "all_gather": {"direct": exchanges.all_gather},
    "all_to_all": {"direct": collectives.all_to_all},
    "barrier": {"dissemination": lambda network, _: collectives.barrier(network)},
}
"""Cost of each algorithm of each collective. The first of equally cheap ones is chosen."""


def algorithm_cost(collective: str, algorithm: str, network: Network, payload_bytes: float) -> Cost:
    """Return the cost of a collective by one of its algorithms.

    Raises UnknownNameError if it has no such algorithm.
    """
    known = ALGORITHMS[collective]
    if algorithm not in known:
        raise UnknownNameError(f"algorithm of {collective}", algorithm, tuple(known))
    cost = known[algorithm](network, payload_bytes)
    if network.cores is None or not cost.num_rounds:
        return cost
    call_s = network.cores.call_excess_s(network.num_workers)
    return replace(cost, seconds=cost.seconds + call_s)


def cheapest_algorithm(collective: str, network: Network, payload_bytes: float) -> str:
    """Return the name of the fastest algorithm.

    >>> from talka.network.link import Link
    >>> network = Network.equal(Link(0.0001, 1e9), 8)
    >>> [cheapest_algorithm("all_reduce", network, size) for size in (100, 10_000_000)]
    ['gathered', 'direct']
    """
    algorithms = ALGORITHMS[collective]

    def seconds(name: str) -> float:
        return float(f"{algorithms[name](network, payload_bytes).seconds:.9g}")

    return min(algorithms, key=seconds)
