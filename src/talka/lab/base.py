"""Configuration, options and results of a lab."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from talka.errors import GangError, InvalidValueError
from talka.events import Stream
from talka.lab.troubles import Trouble
from talka.machine import num_cores

MAX_HOSTS = 250  # addresses in one subnet
MAX_RANKS = 1000
MIN_RATE_BITS_PER_S, MAX_RATE_BITS_PER_S = 10e3, 100e9
MIN_LATENCY_S, MAX_LATENCY_S = 100e-6, 2.0
MIN_CORES = 0.01  # a quota of 1 ms, the kernel's shortest, per 100 ms


@dataclass(frozen=True, kw_only=True, slots=True)
class LabConfig:
    """Hosts with one link each, and the ranks on them.

    >>> LabConfig(num_hosts=3, rate_bits_per_s=1e8, rate_of={2: 2e7}).rates_bits_per_s
    (100000000.0, 100000000.0, 20000000.0)
    """

    num_hosts: int
    rate_bits_per_s: float
    """Rate of every link, in each direction."""

    rate_of: Mapping[int, float] = field(default_factory=dict)
    """Rates of hosts whose link differs, in bits per second."""

    ranks_per_host: int = 1
    latency_s: float = 0.0
    """Seconds that a packet takes from host to host, in addition to those of the rates."""

    cores: float | None = None
    """Processor quota of every host, in cores; None for no quota."""

    cores_of: Mapping[int, float] = field(default_factory=dict)
    """Quotas of hosts that differ, in cores."""

    def __post_init__(self) -> None:
        if not 1 <= self.num_hosts <= MAX_HOSTS:
            raise InvalidValueError("num_hosts", self.num_hosts, f"from 1 to {MAX_HOSTS}")
        if not 1 <= self.ranks_per_host <= MAX_RANKS // self.num_hosts:
            allowed = f"from 1 to {MAX_RANKS // self.num_hosts} (at most {MAX_RANKS} ranks in all)"
            raise InvalidValueError("ranks_per_host", self.ranks_per_host, allowed)
        check_rate(self.rate_bits_per_s)
        for host, rate in self.rate_of.items():
            if not 0 <= host < self.num_hosts:
                raise InvalidValueError("rate_of", host, f"a host from 0 to {self.num_hosts - 1}")
            check_rate(rate)
        check_latency(self.latency_s)
        self._check_quotas()

    def _check_quotas(self) -> None:
        for host, cores in self.cores_of.items():
            if not 0 <= host < self.num_hosts:
                raise InvalidValueError("cores_of", host, f"a host from 0 to {self.num_hosts - 1}")
            _check_cores("cores_of", cores)
        if self.cores is not None:
            _check_cores("cores", self.cores)
        total = sum(cores for cores in self.cores_by_host if cores is not None)
        if total > num_cores() * (1 + 1e-9):
            name = "cores_of" if self.cores is None else "cores"
            allowed = f"at most {num_cores()} for all hosts together, the cores of this machine"
            raise InvalidValueError(name, f"{total:g} in sum", allowed)

    @property
    def num_ranks(self) -> int:
        """Number of ranks on all hosts."""
        return self.num_hosts * self.ranks_per_host

    @property
    def rates_bits_per_s(self) -> tuple[float, ...]:
        """Rate of each host's link."""
        return tuple(self.rate_of.get(host, self.rate_bits_per_s) for host in range(self.num_hosts))

    @property
    def cores_by_host(self) -> tuple[float | None, ...]:
        """Processor quota of each host in cores; None for a host without a quota."""
        return tuple(self.cores_of.get(host, self.cores) for host in range(self.num_hosts))

    def host_of(self, rank: int) -> int:
        """Return the host of a rank."""
        return rank // self.ranks_per_host


def check_rate(rate_bits_per_s: float) -> None:
    """Raise InvalidValueError for a rate that a lab does not support."""
    if not MIN_RATE_BITS_PER_S <= rate_bits_per_s <= MAX_RATE_BITS_PER_S:
        allowed = "from 10 kbit/s to 100 Gbit/s (1e4 to 1e11)"
        raise InvalidValueError("rate_bits_per_s", rate_bits_per_s, allowed)


def check_latency(latency_s: float) -> None:
    """Raise InvalidValueError for a latency that a lab does not support."""
    if latency_s != 0 and not MIN_LATENCY_S <= latency_s <= MAX_LATENCY_S:
        raise InvalidValueError("latency_s", latency_s, "0, or from 0.1 ms to 2 s (1e-4 to 2)")


def _check_cores(name: str, cores: float) -> None:
    if not MIN_CORES <= cores <= num_cores():
        allowed = f"from {MIN_CORES} to {num_cores()}, the cores of this machine"
        raise InvalidValueError(name, cores, allowed)


def address_of(host: int) -> str:
    """Return the address of a host. It is the same in every lab: labs are isolated from each other.

    >>> address_of(0), address_of(249)
    ('10.0.0.1', '10.0.0.250')
    """
    return f"10.0.0.{host + 1}"


@dataclass(frozen=True, kw_only=True, slots=True)
class LabRunOptions:
    """Options for running one command."""

    troubles: Sequence[Trouble] = ()
    timeout_s: float | None = None
    logs: Path | None = None
    """Folder for `rank-R.log`; without it, logs are kept only if the run fails."""

    show: Callable[[bytes], object] | None = None
    """Called with each piece of rank 0's output as soon as it is printed."""

    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables in addition to those of this process."""

    events: Stream | None = None
    """Stream for events of the run: its hosts, its troubles, traffic, exit codes and seconds."""


@dataclass(frozen=True, slots=True)
class HostResult:
    """Traffic of one host during a run."""

    host: int
    address: str
    rate_bits_per_s: float
    sent_bytes: int
    """Bytes sent through the host's link, headers included, as counted by its queue."""
    received_bytes: int


@dataclass(frozen=True, slots=True)
class RankResult:
    """Exit code and log of one rank."""

    rank: int
    host: int
    exit_code: int
    """Exit code; a negative number is the signal that killed the rank."""
    log: Path | None
    """Path of the log; None without a folder for logs, if no rank failed."""


@dataclass(frozen=True, slots=True)
class LabResult:
    """Traffic, exit codes and duration of one run."""

    hosts: tuple[HostResult, ...]
    ranks: tuple[RankResult, ...]
    seconds: float
    failure: GangError | None
    """Error of the rank that failed first, with the end of its log. A `Kill` is not a failure."""

    def check(self) -> None:
        """Raise `failure` if a rank failed."""
        if self.failure is not None:
            raise self.failure

    def as_json(self) -> dict[str, Any]:
        """Return the result, without the failure, as JSON-compatible values."""
        return {
            "hosts": [
                {name: getattr(host, name) for name in HostResult.__slots__} for host in self.hosts
            ],
            "ranks": [
                {
                    "rank": rank.rank,
                    "host": rank.host,
                    "exit_code": rank.exit_code,
                    "log": None if rank.log is None else str(rank.log),
                }
                for rank in self.ranks
            ],
            "seconds": self.seconds,
        }
