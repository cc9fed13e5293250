"""Cost of rounds of transfers: bytes by worker, and seconds.

A scheme is a list of rounds, a round is a list of (sender, receiver) pairs that transfer the same
number of bytes. The model is described in `talka.network`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from talka.network.link import Link, Network, check_bytes

Pair = tuple[int, int]
"""Ranks of a sender and a receiver."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Bytes, seconds and rounds, with the reason. `+` adds the cost of what follows."""

    sent_bytes_by_rank: tuple[float, ...]
    """Bytes that each worker sends, followed by those of machines that are only servers."""

    received_bytes_by_rank: tuple[float, ...]
    seconds: float
    num_rounds: int
    reason: str = ""
    """Formula behind the cost; P is the number of workers, B the bytes of one payload."""

    @property
    def max_sent_bytes(self) -> float:
        """Bytes sent by the worker that sends most."""
        return max(self.sent_bytes_by_rank)

    @property
    def total_bytes(self) -> float:
        """Bytes sent by all workers and servers."""
        return sum(self.sent_bytes_by_rank)

    def __add__(self, later: "Cost") -> "Cost":
        return Cost(
            tuple(
                a + b
                for a, b in zip(self.sent_bytes_by_rank, later.sent_bytes_by_rank, strict=True)
            ),
            tuple(
                a + b
                for a, b in zip(
                    self.received_bytes_by_rank, later.received_bytes_by_rank, strict=True
                )
            ),
            self.seconds + later.seconds,
            self.num_rounds + later.num_rounds,
            self.reason or later.reason,
        )

    def times(self, count: int) -> "Cost":
        """Return the cost of doing this `count` times in a row."""
        return Cost(
            tuple(count * sent for sent in self.sent_bytes_by_rank),
            tuple(count * received for received in self.received_bytes_by_rank),
            count * self.seconds,
            count * self.num_rounds,
            self.reason,
        )

    def at(self, ranks: Sequence[int], num_workers: int) -> "Cost":
        """Return the cost of a part of the workers (see `Network.among`) as one of all workers."""
        sent, received = [0.0] * num_workers, [0.0] * num_workers
        for rank, out_bytes, in_bytes in zip(
            ranks, self.sent_bytes_by_rank, self.received_bytes_by_rank, strict=True
        ):
            sent[rank], received[rank] = out_bytes, in_bytes
        return replace(self, sent_bytes_by_rank=tuple(sent), received_bytes_by_rank=tuple(received))

    def because(self, reason: str) -> "Cost":
        """Return the same cost with a reason."""
        return replace(self, reason=reason if self.num_rounds else "nothing is sent")


def no_cost(num_workers: int) -> Cost:
    """Return the cost of sending nothing."""
    zeros = (0.0,) * num_workers
    return Cost(zeros, zeros, seconds=0.0, num_rounds=0)


def cost_of_rounds(network: Network, rounds: Iterable[Sequence[Pair]], num_bytes: float) -> Cost:
    """Return the cost of successive rounds in which each sender sends `num_bytes` to its receiver.

    >>> slow, fast = Link(0.002, 4e6), Link(0.001, 8e6)
    >>> cost = cost_of_rounds(Network((fast, fast, slow)), [[(0, 1), (0, 2)]], 1_000_000)
    >>> (
    ...     cost.seconds,
    ...     cost.sent_bytes_by_rank,
    ... )  # two million bytes leave worker 0 at a million a second
    (2.002, (2000000.0, 0.0, 0.0))
    """
    num_bytes = check_bytes(num_bytes)
    cost = no_cost(network.num_workers)
    for pairs in rounds:
        if pairs:
            cost += _one_round(network, pairs, num_bytes)
    return cost


def _one_round(network: Network, pairs: Sequence[Pair], num_bytes: float) -> Cost:
    num_workers, num_hosts = network.num_workers, len(network.links)
    hosts = network.host_of_worker
    # Ports of the hosts, then one inner port per worker for transfers within a host.
    ports = network.links + (network.inner,) * num_workers
    used = [
        (num_hosts + a, num_hosts + b) if hosts[a] == hosts[b] else (hosts[a], hosts[b])
        for a, b in pairs
    ]
    port_out, port_in = Counter(a for a, _ in used), Counter(b for _, b in used)
    out_s = {
        port: 8 * count * num_bytes / ports[port].rate_bits_per_s
        for port, count in port_out.items()
    }
    in_s = {
        port: 8 * count * num_bytes / ports[port].rate_down_bits_per_s
        for port, count in port_in.items()
    }
    sent, received = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    return Cost(
        tuple(sent[rank] * num_bytes for rank in range(num_workers)),
        tuple(received[rank] * num_bytes for rank in range(num_workers)),
        seconds=max(
            max(ports[a].latency_s, ports[b].latency_s) + max(out_s[a], in_s[b]) for a, b in used
        ),
        num_rounds=1,
    )


def all_pairs_round(network: Network, num_bytes: float) -> Cost:
    """Return the cost of one round in which each worker sends `num_bytes` to every other.

    Equal to `cost_of_rounds` with all P (P-1) pairs, but computed from sums: every host has a path
    with the largest latency, so the round takes that latency plus the time of the busiest port. A
    host receives as much as it sends, so its port takes as long as its slower direction.
    """
    num_bytes = check_bytes(num_bytes)
    num_workers = network.num_workers
    if num_workers == 1:
        return no_cost(1)
    seconds = 0.0
    if len(network.links) > 1:
        seconds = max(link.latency_s for link in network.links) + max(
            _busy_s(link, count * (num_workers - count) * num_bytes)
            for link, count in zip(network.links, network.workers_per_host, strict=True)
        )
    most = max(network.workers_per_host)
    if most > 1:
        inner_s = network.inner.latency_s + _busy_s(network.inner, (most - 1) * num_bytes)
        seconds = max(seconds, inner_s)
    each = ((num_workers - 1) * num_bytes,) * num_workers
    return Cost(each, each, seconds, num_rounds=1)


def _busy_s(port: Link, num_bytes: float) -> float:
    """Return the seconds in which a port sends and receives this many bytes each."""
    return 8 * num_bytes / min(port.rate_bits_per_s, port.rate_down_bits_per_s)
