"""What a lab is asked for, and what it answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from talka.errors import GangError, InvalidValueError

MAX_HOSTS = 250  # addresses of one subnet
MAX_RANKS = 1000
MIN_RATE_BITS_PER_S, MAX_RATE_BITS_PER_S = 10e3, 100e9


@dataclass(frozen=True, kw_only=True, slots=True)
class LabConfig:
    """Hosts with one link each.

    >>> LabConfig(num_hosts=3, rate_bits_per_s=1e8, rate_of={2: 2e7}).rates_bits_per_s
    (100000000.0, 100000000.0, 20000000.0)
    """

    num_hosts: int
    rate_bits_per_s: float
    """Of every link, in each direction."""

    rate_of: Mapping[int, float] = field(default_factory=dict)
    """Hosts whose link has another rate."""

    ranks_per_host: int = 1

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

    @property
    def num_ranks(self) -> int:
        return self.num_hosts * self.ranks_per_host

    @property
    def rates_bits_per_s(self) -> tuple[float, ...]:
        return tuple(self.rate_of.get(host, self.rate_bits_per_s) for host in range(self.num_hosts))

    def host_of(self, rank: int) -> int:
        return rank // self.ranks_per_host


def check_rate(rate_bits_per_s: float) -> None:
    if not MIN_RATE_BITS_PER_S <= rate_bits_per_s <= MAX_RATE_BITS_PER_S:
        allowed = "from 10 kbit/s to 100 Gbit/s (1e4 to 1e11)"
        raise InvalidValueError("rate_bits_per_s", rate_bits_per_s, allowed)


def address_of(host: int) -> str:
    """Every lab has the same addresses: no lab sees another, nor the world outside.

    >>> address_of(0), address_of(249)
    ('10.0.0.1', '10.0.0.250')
    """
    return f"10.0.0.{host + 1}"


@dataclass(frozen=True, slots=True)
class Kill:
    """End all processes of a rank, some seconds after the start."""

    rank: int
    at_s: float


@dataclass(frozen=True, slots=True)
class Pause:
    """Stop all processes of a rank for a while."""

    rank: int
    at_s: float
    for_s: float


Trouble = Kill | Pause


@dataclass(frozen=True, kw_only=True, slots=True)
class LabRunOptions:
    """How one command is run."""

    troubles: Sequence[Trouble] = ()
    timeout_s: float | None = None
    logs: Path | None = None
    """Folder for `rank-R.log`; without it only the logs of a run that failed are kept."""

    show: Callable[[bytes], object] | None = None
    """Is given what rank 0 prints, as it comes."""

    environment: Mapping[str, str] = field(default_factory=dict)
    """On top of this process's own."""


@dataclass(frozen=True, slots=True)
class HostResult:
    host: int
    address: str
    rate_bits_per_s: float
    sent_bytes: int
    """Through its link, headers included, as the link's own queue counted them."""
    received_bytes: int


@dataclass(frozen=True, slots=True)
class RankResult:
    rank: int
    host: int
    exit_code: int
    """Negative: ended by that signal."""
    log: Path | None
    """None: no folder was asked for, and nothing failed."""


@dataclass(frozen=True, slots=True)
class LabResult:
    hosts: tuple[HostResult, ...]
    ranks: tuple[RankResult, ...]
    seconds: float
    failure: GangError | None
    """The rank that failed first, with the end of its log. A `Kill` is no failure."""

    def check(self) -> None:
        """Raise if a rank failed."""
        if self.failure is not None:
            raise self.failure

    def as_json(self) -> dict[str, Any]:
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
