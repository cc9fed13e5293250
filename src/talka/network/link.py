"""A link, and a network of hosts with one link each."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import cast

from talka.errors import InvalidValueError


def check_bytes(num_bytes: float, *, name: str = "payload_bytes") -> float:
    """Return the size as a float. Raise InvalidValueError if it is negative or not finite."""
    if not 0 <= num_bytes <= sys.float_info.max:
        raise InvalidValueError(name, num_bytes, "a finite number of bytes, 0 or more")
    return float(num_bytes)


def share_of(payload_bytes: float, count: int) -> float:
    """Return the bytes of one of `count` equal pieces of a payload, as a real number.

    >>> share_of(100, 8)
    12.5
    """
    return check_bytes(payload_bytes) / count


@dataclass(frozen=True, slots=True)
class Link:
    """A link with a latency per transfer, a constant rate up and a constant rate down.

    >>> Link(latency_s=0.0001, rate_bits_per_s=1e9).seconds(25_000_000)
    0.2001
    >>> Link(0.01, 10e6, 50e6).rate_down_bits_per_s  # a host that receives faster than it sends
    50000000.0
    """

    latency_s: float
    rate_bits_per_s: float
    """Bits per second up: from the host to the network."""

    rate_down_bits_per_s: float = None  # type: ignore[assignment]  # see __post_init__
    """Bits per second down: from the network to the host. By default the rate up."""

    burst_bytes: float = 0.0
    """Bytes in each direction that pass at once after a pause, as through a full token bucket."""

    overhead_s: float = 0.0
    """Processor seconds per message of its sender, and of its receiver. The latency contains both."""

    def __post_init__(self) -> None:
        if cast("float | None", self.rate_down_bits_per_s) is None:
            object.__setattr__(self, "rate_down_bits_per_s", self.rate_bits_per_s)
        if not 0 <= self.latency_s < math.inf:
            raise InvalidValueError("latency_s", self.latency_s, "a finite time, 0 or more")
        for name in ("rate_bits_per_s", "rate_down_bits_per_s"):
            if not 0 < getattr(self, name) < math.inf:
                raise InvalidValueError(name, getattr(self, name), "finite and above 0")
        for name in ("burst_bytes", "overhead_s"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InvalidValueError(name, getattr(self, name), "finite, 0 or more")

    def seconds(self, num_bytes: float) -> float:
        """Return the seconds that one transfer up takes after a pause."""
        size = check_bytes(num_bytes, name="num_bytes")
        return self.latency_s + 8 * max(0.0, size - self.burst_bytes) / self.rate_bits_per_s


LOOPBACK = Link(latency_s=30e-6, rate_bits_per_s=20e9)
"""Default link between processes of one host: roughly what TCP over loopback achieves."""


@dataclass(frozen=True, slots=True)
class SharedCores:
    """Cores that all hosts of a network share, as those of a lab do."""

    num_cores: int
    call_s: float = 0.0
    """Processor seconds of each rank per call of a collective, without those per message."""

    def __post_init__(self) -> None:
        if self.num_cores < 1:
            raise InvalidValueError("num_cores", self.num_cores, "at least 1")
        if not 0 <= self.call_s < math.inf:
            raise InvalidValueError("call_s", self.call_s, "a finite time, 0 or more")

    def call_excess_s(self, num_workers: int) -> float:
        """Return the seconds by which a call of all workers is later than one of two of them."""
        return self.call_s * max(0, num_workers - 2) / self.num_cores


@dataclass(frozen=True, slots=True)
class Network:
    """Hosts with one link each, and the workers on them, ranked host by host.

    >>> slow, fast = Link(0.001, 100e6), Link(0.0001, 1e9)
    >>> Network((fast, fast, slow)).num_workers
    3
    >>> Network((fast, slow), workers_per_host=(2, 1)).host_of_worker
    (0, 0, 1)
    """

    links: tuple[Link, ...]
    """Link of each host."""

    workers_per_host: tuple[int, ...] = ()
    """Number of workers on each host; empty for one worker per host."""

    inner: Link = LOOPBACK
    """Link between two workers of the same host."""

    cores: SharedCores | None = None
    """Cores that all hosts share; None if each host has its own."""

    def __post_init__(self) -> None:
        counts = tuple(self.workers_per_host) or (1,) * len(self.links)
        object.__setattr__(self, "links", tuple(self.links))
        object.__setattr__(self, "workers_per_host", counts)
        if not self.links:
            raise InvalidValueError("links", self.links, "one link per host, for at least one host")
        if len(counts) != len(self.links) or min(counts) < 1:
            allowed = f"one number of at least 1 for each of {len(self.links)} hosts"
            raise InvalidValueError("workers_per_host", counts, allowed)

    @classmethod
    def equal(
        cls,
        link: Link,
        num_workers: int,
        *,
        num_hosts: int | None = None,
        inner: Link = LOOPBACK,
        cores: SharedCores | None = None,
    ) -> "Network":
        """Return a network of equal links, with workers spread over the hosts as evenly as possible.

        >>> Network.equal(Link(0.0001, 1e9), 8, num_hosts=3).workers_per_host
        (3, 3, 2)
        """
        if num_workers < 1:
            raise InvalidValueError("num_workers", num_workers, "at least 1")
        num_hosts = num_workers if num_hosts is None else num_hosts
        counts = spread(num_workers, num_hosts=num_hosts)
        return cls((link,) * num_hosts, workers_per_host=counts, inner=inner, cores=cores)

    @property
    def num_workers(self) -> int:
        """Number of workers on all hosts."""
        return sum(self.workers_per_host)

    @property
    def host_of_worker(self) -> tuple[int, ...]:
        """Index of the host of each worker, by rank."""
        return tuple(host for host, count in enumerate(self.workers_per_host) for _ in range(count))

    def among(self, ranks: Sequence[int]) -> "Network":
        """Return the network of some workers, while the others are silent.

        Workers are ranked host by host in it as well. So the ranks of one host must follow one
        another, but hosts, and workers of a host, may be in any order: the costs of a ring or a tree
        depend on it.

        >>> network = Network((Link(0.1, 1e9), Link(0.2, 1e8)), workers_per_host=(3, 2))
        >>> network.among([3, 0, 2]).workers_per_host
        (1, 2)
        """
        hosts = self.host_of_worker
        is_valid = set(ranks) <= set(range(len(hosts))) and len(set(ranks)) == len(ranks) > 0
        groups = groupby(ranks, lambda rank: hosts[rank]) if is_valid else ()
        counts = [(host, len(list(members))) for host, members in groups]
        if not is_valid or len(dict(counts)) < len(counts):
            allowed = f"distinct ranks from 0 to {len(hosts) - 1}, those of one host together"
            raise InvalidValueError("ranks", tuple(ranks), allowed)
        links = tuple(self.links[host] for host, _ in counts)
        return Network(links, tuple(count for _, count in counts), self.inner, self.cores)

    def path(self, sender: int, receiver: int) -> Link:
        """Return the effective link from one worker to another while both are otherwise idle.

        Its rate up is the rate from the sender to the receiver, its rate down that of answers.

        >>> path = Network((Link(0.001, 1e9, 5e9), Link(0.002, 2e9))).path(0, 1)
        >>> path.latency_s, path.rate_bits_per_s, path.rate_down_bits_per_s
        (0.002, 1000000000.0, 2000000000.0)
        """
        hosts = self.host_of_worker
        if hosts[sender] == hosts[receiver]:
            return self.inner
        near, far = self.links[hosts[sender]], self.links[hosts[receiver]]
        return Link(
            max(near.latency_s, far.latency_s),
            min(near.rate_bits_per_s, far.rate_down_bits_per_s),
            min(near.rate_down_bits_per_s, far.rate_bits_per_s),
            min(near.burst_bytes, far.burst_bytes),
            max(near.overhead_s, far.overhead_s),
        )


def spread(num_workers: int, *, num_hosts: int) -> tuple[int, ...]:
    """Return the number of workers on each host; the first hosts get one more if uneven.

    >>> spread(8, num_hosts=3)
    (3, 3, 2)
    """
    if not 1 <= num_hosts <= num_workers:
        allowed = f"from 1 to the number of workers, {num_workers}"
        raise InvalidValueError("num_hosts", num_hosts, allowed)
    share, rest = divmod(num_workers, num_hosts)
    return (share + 1,) * rest + (share,) * (num_hosts - rest)
