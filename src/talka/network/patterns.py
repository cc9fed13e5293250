"""Communication patterns: rounds of (sender, receiver) pairs."""

from collections.abc import Sequence
from itertools import accumulate

from talka.network.cost import Pair
from talka.network.link import Network


def ring(ranks: Sequence[int]) -> list[Pair]:
    """Return pairs in which each rank sends to the next, and the last to the first.

    >>> ring(range(3))
    [(0, 1), (1, 2), (2, 0)]
    """
    if len(ranks) < 2:
        return []
    return list(zip(ranks, [*ranks[1:], ranks[0]], strict=True))


def binomial_tree(ranks: Sequence[int]) -> list[list[Pair]]:
    """Return rounds that reach all ranks from the first: in each, every rank reached sends to one.

    >>> binomial_tree(range(6))
    [[(0, 1)], [(0, 2), (1, 3)], [(0, 4), (1, 5)]]
    """
    rounds, reached = [], 1
    while reached < len(ranks):
        rounds.append(list(zip(ranks[:reached], ranks[reached : 2 * reached], strict=False)))
        reached *= 2
    return rounds


def backwards(rounds: Sequence[Sequence[Pair]]) -> list[list[Pair]]:
    """Reverse all rounds and directions, which turns a broadcast into a reduction.

    >>> backwards(binomial_tree(range(4)))
    [[(2, 0), (3, 1)], [(1, 0)]]
    """
    return [[(receiver, sender) for sender, receiver in pairs] for pairs in reversed(rounds)]


def ranks_by_host(network: Network) -> list[range]:
    """Return the ranks of each host's workers."""
    stops = accumulate(network.workers_per_host)
    return [
        range(stop - count, stop)
        for stop, count in zip(stops, network.workers_per_host, strict=True)
    ]
