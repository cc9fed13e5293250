"""The choice of an algorithm by size, from the cost model, and the assumed network."""

import functools
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from talka.errors import UnknownNameError
from talka.network import LOOPBACK, Link, Network
from talka.network.algorithms import ALGORITHMS, cheapest_algorithm

ASSUMED: Final = Link(latency_s=2e-4, rate_bits_per_s=1e9)
"""Link between machines if nothing else is known: the choice depends on its order of magnitude."""

_SHORT_BYTES: Final = 1 << 18
_ON_ONE_MACHINE: Final = {
    "broadcast": ("direct", "direct"),
    "reduce": ("direct", "tree"),
    "all_reduce": ("gathered", "direct"),
}
"""Algorithms on one machine up to `_SHORT_BYTES`, and above, as `benchmarks.collectives` measured."""


@functools.lru_cache(maxsize=4096)
def choose(collective: str, network: Network, num_bytes: int) -> str:
    """Return the algorithm that is cheapest on a network; the same on all ranks.

    Sizes are rounded up to a power of two, so that one decision serves many calls. On one machine
    ranks copy from the memory of others at the same time, and memory limits what they combine, which
    the model, made for ports, does not describe: there a table decides.
    """
    if collective in _ON_ONE_MACHINE and len(network.links) == 1:
        short, long = _ON_ONE_MACHINE[collective]
        return short if num_bytes <= _SHORT_BYTES else long
    return _cheapest(collective, network, 1 << max(0, num_bytes - 1).bit_length())


@functools.lru_cache(maxsize=1024)
def _cheapest(collective: str, network: Network, num_bytes: int) -> str:
    return cheapest_algorithm(collective, network, num_bytes)


def check_algorithm(collective: str, algorithm: str | None) -> None:
    """Raise UnknownNameError if a collective does not have an algorithm."""
    if algorithm is not None and algorithm not in ALGORITHMS[collective]:
        raise UnknownNameError(
            f"algorithm of {collective}", algorithm, tuple(ALGORITHMS[collective])
        )


def assumed_network(machines: Sequence[str], link: Link = ASSUMED) -> Network | None:
    """Return a network of equal links between machines, from the machine of each rank.

    None if ranks of one machine do not follow one another: the cost model cannot describe that.

    >>> assumed_network(["a", "a", "b"]).workers_per_host
    (2, 1)
    >>> assumed_network(["a", "b", "a"])
    """
    counts = [(machine, len(list(ranks))) for machine, ranks in groupby(machines)]
    if len(dict(counts)) < len(counts):
        return None
    if len(counts) == 1:
        link = LOOPBACK
    return Network((link,) * len(counts), workers_per_host=tuple(n for _, n in counts))
