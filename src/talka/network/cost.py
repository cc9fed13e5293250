"""Cost of rounds of transfers: bytes by worker, and seconds.

A scheme is a list of rounds, a round is a list of (sender, receiver) pairs that transfer the same
number of bytes. The model is described in `talka.network`.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

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
    num_bytes, schedule = check_bytes(num_bytes), Rounds(network)
    for pairs in rounds:
        schedule.add(pairs, num_bytes)
    return schedule.cost


class Rounds:
    """Rounds of transfers, one after another, and their cost. Bursts are full before the first.

    >>> link = Link(latency_s=1, rate_bits_per_s=8, burst_bytes=10)  # one byte per second
    >>> rounds = Rounds(Network.equal(link, 2))
    >>> rounds.add([(0, 1)], 12).seconds, rounds.add([(0, 1)], 12).seconds  # 1 byte is saved up
    (3.0, 12.0)
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._hosts = network.host_of_worker
        # Ports of the hosts, then one inner port per worker for transfers within a host.
        self._ports: tuple[Link, ...] = network.links + (network.inner,) * network.num_workers
        self.cost = no_cost(network.num_workers)
        """Cost of all rounds so far."""
        self._tokens = tuple((port.burst_bytes, port.burst_bytes) for port in self._ports)
        """Bytes that each port can send, and receive, at once."""

    def add(self, pairs: Sequence[Pair], num_bytes: float, *, times: int = 1) -> Cost:
        """Add rounds in which each sender sends `num_bytes` to its receiver; return their cost."""
        num_bytes, hosts = check_bytes(num_bytes), self._hosts
        num_hosts, num_workers = len(self._network.links), self._network.num_workers
        used = [
            (num_hosts + a, num_hosts + b) if hosts[a] == hosts[b] else (hosts[a], hosts[b])
            for a, b in pairs
        ]
        port_out, port_in = Counter(a for a, _ in used), Counter(b for _, b in used)
        sent, received = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)

        def seconds() -> float:
            return max(
                self._latency_s(a, b)
                + max(
                    self._out_s(a, port_out[a] * num_bytes), self._in_s(b, port_in[b] * num_bytes)
                )
                for a, b in used
            )

        round_ = _Round(
            tuple(sent[rank] * num_bytes for rank in range(num_workers)),
            tuple(received[rank] * num_bytes for rank in range(num_workers)),
            {port: count * num_bytes for port, count in port_out.items()},
            {port: count * num_bytes for port, count in port_in.items()},
            self._processor_s(pairs, used),
        )
        return self._repeat(round_, seconds, times if pairs else 0)

    def add_all_pairs(self, num_bytes: float, *, times: int = 1) -> Cost:
        """Add rounds in which each worker sends `num_bytes` to every other; return their cost.

        Equal to `add` with all P (P-1) pairs, but computed from sums: every host has a path with the
        largest latency, so the round takes that latency plus the time of the busiest port. A host
        receives as much as it sends, so its port takes as long as its slower direction.
        """
        num_bytes, network = check_bytes(num_bytes), self._network
        num_workers, num_hosts = network.num_workers, len(network.links)
        counts, most = network.workers_per_host, max(network.workers_per_host)
        by_port = {
            host: count * (num_workers - count) * num_bytes for host, count in enumerate(counts)
        }
        inner = range(num_hosts, num_hosts + num_workers)
        by_port |= {port: (counts[self._hosts[port - num_hosts]] - 1) * num_bytes for port in inner}

        def busy_s(ports: Iterable[int]) -> float:
            return max(
                max(self._out_s(port, by_port[port]), self._in_s(port, by_port[port]))
                for port in ports
            )

        def seconds() -> float:
            across_s = inside_s = 0.0
            if num_hosts > 1:
                across_s = max(link.latency_s for link in network.links) + busy_s(range(num_hosts))
            if most > 1:
                inside_s = network.inner.latency_s + busy_s(inner)
            return max(across_s, inside_s)

        each = ((num_workers - 1) * num_bytes,) * num_workers
        round_ = _Round(each, each, by_port, by_port, self._processor_of_all_pairs_s())
        return self._repeat(round_, seconds, times if num_workers > 1 else 0)

    def _repeat(self, round_: "_Round", seconds: Callable[[], float], times: int) -> Cost:
        """Add a round several times; if it leaves ports as they were, all later ones are equal."""
        total = no_cost(self._network.num_workers)
        while times > 0:
            round_s, before = max(seconds(), round_.processor_s), self._tokens
            self._pass(round_, round_s)
            count = times if self._tokens == before else 1
            cost = Cost(round_.sent, round_.received, round_s, num_rounds=1)
            total += cost.times(count) if count > 1 else cost
            times -= count
        self.cost += total
        return total

    def _pass(self, round_: "_Round", seconds: float) -> None:
        """Fill the buckets for the time of a round, and take out what passed."""
        if not any(port.burst_bytes for port in self._ports):
            return
        tokens = []
        for index, (port, (up, down)) in enumerate(zip(self._ports, self._tokens, strict=True)):
            up += seconds * port.rate_bits_per_s / 8 - round_.out_bytes.get(index, 0.0)
            down += seconds * port.rate_down_bits_per_s / 8 - round_.in_bytes.get(index, 0.0)
            tokens.append((min(port.burst_bytes, up), min(port.burst_bytes, down)))
        self._tokens = tuple(tokens)

    def _out_s(self, port: int, num_bytes: float) -> float:
        return 8 * max(0.0, num_bytes - self._tokens[port][0]) / self._ports[port].rate_bits_per_s

    def _in_s(self, port: int, num_bytes: float) -> float:
        rate = self._ports[port].rate_down_bits_per_s
        return 8 * max(0.0, num_bytes - self._tokens[port][1]) / rate

    def _latency_s(self, sending_port: int, receiving_port: int) -> float:
        return max(self._ports[sending_port].latency_s, self._ports[receiving_port].latency_s)

    def _processor_s(self, pairs: Sequence[Pair], used: Sequence[Pair]) -> float:
        """Return the latency of a round with the processor time of its messages, but the first."""
        if not any(port.overhead_s for port in self._ports) or not pairs:
            return 0.0
        sends, receives = defaultdict[int, list[float]](list), defaultdict[int, list[float]](list)
        for (sender, receiver), (a, b) in zip(pairs, used, strict=True):
            sends[sender].append(self._ports[a].overhead_s)
            receives[receiver].append(self._ports[b].overhead_s)
        busy_s = {
            rank: sum(sends[rank]) + sum(receives[rank]) for rank in sends.keys() | receives.keys()
        }
        first_s = {
            rank: max(sends[rank], default=0.0) + max(receives[rank], default=0.0)
            for rank in busy_s
        }
        latency_s = max(self._latency_s(a, b) for a, b in used)
        one_s = max(self._ports[a].overhead_s + self._ports[b].overhead_s for a, b in used)
        most_s = max(busy_s[rank] - first_s[rank] for rank in busy_s)
        return latency_s + self._with_shared_cores(most_s, sum(busy_s.values()) - one_s)

    def _processor_of_all_pairs_s(self) -> float:
        """Return the same as `_processor_s` for all pairs."""
        network, num_workers = self._network, self._network.num_workers
        if num_workers == 1 or not any(port.overhead_s for port in self._ports):
            return 0.0
        inner_s, is_split = network.inner.overhead_s, len(network.links) > 1
        most_s = total_s = 0.0
        for link, count in zip(network.links, network.workers_per_host, strict=True):
            one_way_s = (count - 1) * inner_s + (num_workers - count) * link.overhead_s
            used = [inner_s] * (count > 1) + [link.overhead_s] * is_split
            most_s = max(most_s, 2 * (one_way_s - max(used)))
            total_s += 2 * count * one_way_s
        has_inner = max(network.workers_per_host) > 1
        outer = sorted(link.overhead_s for link in network.links)[-2:]
        latencies_s = [link.latency_s for link in network.links] if is_split else []
        one_s = max(sum(outer) if is_split else 0.0, 2 * inner_s if has_inner else 0.0)
        latency_s = max([*latencies_s, *[network.inner.latency_s] * has_inner])
        return latency_s + self._with_shared_cores(most_s, total_s - one_s)

    def _with_shared_cores(self, serial_s: float, rest_s: float) -> float:
        """Return the time of the busiest rank, or of the cores that all ranks share."""
        cores = self._network.cores
        return serial_s if cores is None else max(serial_s, rest_s / cores.num_cores)


class _Round(NamedTuple):
    """Bytes of one round, and the time that processors need for it."""

    sent: tuple[float, ...]
    received: tuple[float, ...]
    out_bytes: dict[int, float]
    """Bytes up by port."""
    in_bytes: dict[int, float]
    """Bytes down by port."""
    processor_s: float
    """Seconds in which processors can handle the messages."""


def all_pairs_round(network: Network, num_bytes: float) -> Cost:
    """Return the cost of one round in which each worker sends `num_bytes` to every other."""
    return Rounds(network).add_all_pairs(num_bytes)
