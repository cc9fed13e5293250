"""Measure the links between ranks: latency, rate and burst of every pair, in a few seconds.

    rounds of host pairs (a tournament) -> pings -> bytes one way -> bytes the other way -> matrices
    -> calls of all ranks (`calls.py`)

No host is in two measurements at a time, so measurements do not share a port. Ranks of one host
share its port, so one pair of ranks measures each pair of hosts, and one pair the inside of each
host. Rates are of payload: TCP and Ethernet headers leave 95.6 of a link of 100 Mbit/s.
"""

import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from talka.channels import Group
from talka.channels.operations import SendOperation, new_buffer
from talka.errors import InvalidValueError
from talka.exchange.links.calls import (
    PAUSE_S,
    CallTimes,
    MessageCosts,
    measure_calls,
    message_costs,
)
from talka.exchange.links.hosts import hosts_of_all
from talka.exchange.transport import Members, group_of
from talka.network import LOOPBACK, Link, Network, SharedCores

Matrix = tuple[tuple[float, ...], ...]

MIN_MEASURE_S = 0.3  # shorter measurements are distorted by slow start and token buckets
_ENOUGH = 0.7  # share of the intended time: sizes are estimated from the previous trial
_NUM_WARM_UPS, _MIN_PINGS, _MAX_PINGS, _PINGS_S = 3, 10, 200, 0.1
_FIRST_BYTES, _MAX_CHUNK_BYTES, _NUM_CHUNKS, _MAX_GROWTH, _MAX_TRIALS = 16_000, 4_000_000, 16, 64, 8
_STREAM = 1  # tag of the bytes that are measured
_NUM_BURSTS, _BURST_S, _MIN_BURST_BYTES, _BURST_PAUSE_S = 8, 0.004, 16_000, 0.02
_SMALLEST_BURST = 0.1  # share of the bytes of a trial: a smaller one is within the noise
_SAME = 0.7  # share of a rate: hosts that differ by less count as having equal links


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Measured latencies and rates, the same on every rank. Diagonals are 0."""

    hosts: tuple[int, ...]
    """Host of every rank."""

    latency_s: Matrix
    """Seconds one way: half of the round trip of a small message after a pause (lower quartile)."""

    rate_bits_per_s: Matrix
    """Bits per second from the rank of the row to the rank of the column."""

    burst_bytes: Matrix = ()
    """Bytes that pass at once after a pause, beyond what the rate allows; empty if unknown."""

    calls: CallTimes | None = None
    """Seconds of calls of all ranks; None if unknown."""

    def network(self) -> Network:
        """Return links for the cost model; a link is as fast as the host's pairs with faster hosts.

        The rate up follows from what the host sends, the rate down from what it receives.

        >>> rates = ((0.0, 100e6, 20e6), (100e6, 0.0, 20e6), (20e6, 20e6, 0.0))
        >>> latencies = ((0.0, 1e-4, 1e-4), (1e-4, 0.0, 1e-4), (1e-4, 1e-4, 0.0))
        >>> network = ProbeResult((0, 1, 2), latencies, rates).network()
        >>> [link.rate_bits_per_s for link in network.links]
        [100000000.0, 100000000.0, 20000000.0]
        """
        names = sorted(set(self.hosts))
        if list(self.hosts) != sorted(self.hosts):
            raise InvalidValueError("hosts", self.hosts, "in order: ranks host by host")
        inner = self._inner()
        links = [inner or LOOPBACK]
        if len(names) > 1:
            rates = self._by_host(self.rate_bits_per_s)
            paces = _own(self._by_host(self.latency_s, lambda latency_s: 1 / max(latency_s, 1e-9)))
            ups, downs = _own(rates), _own({(b, a): rate for (a, b), rate in rates.items()})
            bursts = self._bursts(len(names))
            overhead_s = self._message_costs().overhead_s
            links = [
                Link(1 / pace, up, down, burst, overhead_s)
                for pace, up, down, burst in zip(paces, ups, downs, bursts, strict=True)
            ]
        counts = tuple(self.hosts.count(name) for name in names)
        cores = None
        if self.calls is not None and self.calls.shared_cores:
            cores = SharedCores(self.calls.shared_cores, self._message_costs().call_s)
        return Network(tuple(links), counts, inner or LOOPBACK, cores)

    def _bursts(self, num_hosts: int) -> list[float]:
        """Return the burst of each host: the largest of its pairs, which have the smaller of two."""
        if not self.burst_bytes:
            return [0.0] * num_hosts
        pairs = self._by_host(self.burst_bytes)
        names = sorted(set(self.hosts))
        return [max(burst for pair, burst in pairs.items() if name in pair) for name in names]

    def _message_costs(self) -> MessageCosts:
        if self.calls is None:
            return MessageCosts(0.0, 0.0)
        latencies_s = [self.latency_s[a][b] for a, b in _pairs(len(self.hosts))]
        return message_costs(self.calls, statistics.median(latencies_s), len(self.hosts))

    def _inner(self) -> Link | None:
        """Return the link between two ranks of one host, if any host has two."""
        pairs = [
            (sender, receiver)
            for sender, receiver in _pairs(len(self.hosts))
            if self.hosts[sender] == self.hosts[receiver]
        ]
        if not pairs:
            return None
        return Link(
            statistics.median(self.latency_s[a][b] for a, b in pairs),
            statistics.median(self.rate_bits_per_s[a][b] for a, b in pairs),
        )

    def _by_host(
        self, matrix: Matrix, value: Callable[[float], float] = float
    ) -> dict[tuple[int, int], float]:
        """Return the median of each pair of hosts, from the first to the second."""
        values_of: dict[tuple[int, int], list[float]] = {}
        for sender, receiver in _pairs(len(self.hosts)):
            ends = self.hosts[sender], self.hosts[receiver]
            if ends[0] != ends[1]:
                values_of.setdefault(ends, []).append(value(matrix[sender][receiver]))
        return {pair: statistics.median(values) for pair, values in values_of.items()}


def probe(group: Members = None, *, seconds: float = 2.0) -> ProbeResult:
    """Measure every pair of hosts of a group, through its channels; all its ranks must call this.

    `seconds` is a target: no single measurement is shorter than `MIN_MEASURE_S`. The host of a rank
    is its `GROUP_RANK`, which torchrun and the lab set, or the machine's name.
    """
    channels = group_of(group, "probe")
    num_ranks, rank = channels.size, channels.rank
    hosts = hosts_of_all(channels)
    rounds = schedule(hosts)
    measure_s = max(MIN_MEASURE_S, seconds / max(1, 2 * len(rounds)))
    measured = np.zeros((3, num_ranks, num_ranks))
    for pairs in rounds:
        for first, second in pairs:
            if rank in (first, second):
                other = _Other(channels, second if rank == first else first)
                _measure(other, measured, (first, second), measure_s)
                break
        else:
            _stand_by(channels)
    measured = channels.all_reduce(measured)  # every value comes from one rank, the others add 0
    latency_s, rates, bursts = (_for_all_ranks(matrix.tolist(), hosts) for matrix in measured)
    calls, most_s = None, max(max(row) for row in latency_s)
    if num_ranks > 1:
        calls = measure_calls(channels, num_hosts=len(set(hosts)), latency_s=most_s)
    return ProbeResult(hosts, latency_s, rates, bursts, calls)


def schedule(hosts: Sequence[int]) -> list[list[tuple[int, int]]]:
    """Return rounds of pairs of ranks with each host at most once per round.

    The first round measures inside of hosts; the others are a tournament of all hosts.

    >>> schedule([0, 1, 2, 3])
    [[(0, 3), (1, 2)], [(0, 2), (1, 3)], [(0, 1), (2, 3)]]
    >>> schedule([0, 0, 1])
    [[(0, 1)], [(0, 2)]]
    """
    ranks_of: dict[int, list[int]] = {}
    for rank, host in enumerate(hosts):
        ranks_of.setdefault(host, []).append(rank)
    inside = [(ranks[0], ranks[1]) for ranks in ranks_of.values() if len(ranks) > 1]
    circle: list[int | None] = [ranks[0] for ranks in ranks_of.values()]
    if len(circle) % 2:
        circle.append(None)  # its partner pauses in that round
    rounds = [inside]
    for _ in range(len(circle) - 1):
        half = len(circle) // 2
        meetings = zip(circle[:half], reversed(circle[half:]), strict=True)
        rounds.append(
            [(min(a, b), max(a, b)) for a, b in meetings if a is not None and b is not None]
        )
        circle.insert(1, circle.pop())
    return [pairs for pairs in rounds if pairs]


class _Other(NamedTuple):
    """The other rank of a measurement."""

    group: Group
    rank: int

    def send(self, *values: float) -> None:
        self.group.send(list(values), to=self.rank)

    def receive(self) -> list[float]:
        values: list[float] = self.group.receive(source=self.rank)
        return values


def _measure(
    other: _Other, measured: "np.ndarray[Any, Any]", pair: tuple[int, int], measure_s: float
) -> None:
    """Make the three measurements of one pair, in step with all other pairs of the round."""
    first, second = pair
    leads = other.rank == second
    other.group.barrier()
    if leads:
        measured[0, first, second] = measured[0, second, first] = _ping(other)
    else:
        _answer_pings(other)
    for sender, receiver in (pair, pair[::-1]):
        other.group.barrier()
        if other.rank == receiver:
            rate = measured[1, sender, receiver] = _send_at_full_rate(other, measure_s)
            latency_s = _ping(other, _NUM_BURSTS)
            measured[2, sender, receiver] = _burst(other, rate, latency_s)
        else:
            _receive_at_full_rate(other)
            _answer_pings(other)
            _answer_bursts(other)


def _stand_by(group: Group) -> None:
    for _ in range(3):
        group.barrier()


def _ping(other: _Other, min_pings: int = _MIN_PINGS) -> float:
    """Return half of a round trip; each follows a pause, as messages of an exchange do."""
    times_s: list[float] = []
    start_s = time.perf_counter()
    is_last = False
    while not is_last:
        time.sleep(PAUSE_S)
        sent_s = time.perf_counter()
        count = len(times_s) - _NUM_WARM_UPS
        is_last = count >= _MAX_PINGS or (count >= min_pings and sent_s - start_s > _PINGS_S)
        other.send(is_last)
        other.receive()
        times_s.append(time.perf_counter() - sent_s)
    return float(np.quantile(times_s[_NUM_WARM_UPS:], 0.25)) / 2


def _answer_pings(other: _Other) -> None:
    is_last = 0.0
    while not is_last:
        [is_last] = other.receive()
        other.send(is_last)


def _burst(other: _Other, rate: float, latency_s: float) -> float:
    """Return the bytes that arrive earlier after a pause than the rate and the latency allow."""
    chunk = np.zeros(max(_MIN_BURST_BYTES, round(rate * _BURST_S / 8)), np.uint8)
    times_s = []
    other.send(len(chunk))
    for _ in range(_NUM_BURSTS):
        time.sleep(_BURST_PAUSE_S)
        sent_s = time.perf_counter()
        other.group.send(chunk, to=other.rank)
        other.receive()
        times_s.append(time.perf_counter() - sent_s)
    seconds = float(np.quantile(times_s, 0.25)) - 2 * latency_s
    burst = min(float(len(chunk)), len(chunk) - rate * seconds / 8)
    return burst if burst > _SMALLEST_BURST * len(chunk) else 0.0


def _answer_bursts(other: _Other) -> None:
    [num_bytes] = other.receive()
    into = np.zeros(int(num_bytes), np.uint8)
    for _ in range(_NUM_BURSTS):
        other.group.receive(source=other.rank, out=into)
        other.send(0)


def _send_at_full_rate(other: _Other, measure_s: float) -> float:
    """Send growing amounts until one takes long enough; the receiver measures the time."""
    num_bytes, rate = _FIRST_BYTES, 0.0
    for _ in range(_MAX_TRIALS):
        chunk_bytes = min(num_bytes // _NUM_CHUNKS, _MAX_CHUNK_BYTES)
        num_chunks = num_bytes // chunk_bytes
        other.send(chunk_bytes, num_chunks)
        _send_stream(other, chunk_bytes, num_chunks)
        [seconds] = other.receive()
        rate = 8 * chunk_bytes * (num_chunks - 1) / seconds
        if seconds >= _ENOUGH * measure_s:
            break
        wanted = round(rate * measure_s / 8)
        num_bytes = max(_FIRST_BYTES, min(wanted, num_bytes * _MAX_GROWTH))
    other.send(0, 0)
    return rate


def _receive_at_full_rate(other: _Other) -> None:
    while True:
        chunk_bytes, num_chunks = (int(value) for value in other.receive())
        if chunk_bytes == 0:
            return
        other.send(_receive_stream(other, chunk_bytes, num_chunks))


def _send_stream(other: _Other, chunk_bytes: int, num_chunks: int) -> None:
    """Send chunks without a pause; they share one buffer, as their content does not matter."""
    mailbox, rank = other.group.mailbox, other.group.global_ranks[other.rank]
    chunk = memoryview(bytes(chunk_bytes))
    in_flight: deque[SendOperation] = deque()
    for _ in range(num_chunks):
        in_flight.append(mailbox.post_send(rank, chunk, tag=_STREAM, context=other.group.context))
        if len(in_flight) == _NUM_CHUNKS:
            in_flight.popleft().wait()
    for send in in_flight:
        send.wait()


def _receive_stream(other: _Other, chunk_bytes: int, num_chunks: int) -> float:
    """Return the seconds from the end of the first chunk to the end of the last.

    By the end of the first, the token bucket is empty.
    """
    mailbox, rank = other.group.mailbox, other.group.global_ranks[other.rank]
    into = new_buffer(chunk_bytes)
    first_s = 0.0
    for _ in range(num_chunks):
        mailbox.post_receive(rank, tag=_STREAM, context=other.group.context, into=into).wait()
        first_s = first_s or time.perf_counter()
    return max(time.perf_counter() - first_s, 1e-9)


def _for_all_ranks(matrix: list[list[float]], hosts: Sequence[int]) -> Matrix:
    """Copy the measurement of one pair of ranks to all ranks of their hosts."""
    by_host = {}
    for a, b in _pairs(len(hosts)):
        if matrix[a][b] or (hosts[a], hosts[b]) not in by_host:
            by_host[hosts[a], hosts[b]] = matrix[a][b]
    return tuple(
        tuple(0.0 if a == b else by_host[hosts[a], hosts[b]] for b in range(len(hosts)))
        for a in range(len(hosts))
    )


def _own(pairs: dict[tuple[int, int], float]) -> list[float]:
    """Return the rate up of each host, given the rates from the first of a pair to the second.

    A pair has the lower of the first one's rate up and the second one's rate down. The best rate of
    a host is close to that of its link; the median over all hosts that receive about as fast is
    closer.
    """
    names = sorted({host for host, _ in pairs})
    best_up = {name: max(rate for (a, _), rate in pairs.items() if a == name) for name in names}
    best_down = {name: max(rate for (_, b), rate in pairs.items() if b == name) for name in names}
    return [
        statistics.median(
            pairs[host, other]
            for other in names
            if other != host and best_down[other] >= _SAME * best_up[host]
        )
        for host in names
    ]


def _pairs(count: int) -> list[tuple[int, int]]:
    return [(a, b) for a in range(count) for b in range(count) if a != b]
