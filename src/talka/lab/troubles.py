"""Troubles of a run: what happens to its ranks, hosts and links, and when."""

from collections.abc import Sequence
from dataclasses import dataclass

from talka.errors import InvalidValueError

MIN_EVERY_S = 0.02  # stopping all processes of a host takes some milliseconds


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill all processes of a rank, `at_s` seconds after the start."""

    rank: int
    at_s: float


@dataclass(frozen=True, slots=True)
class Pause:
    """Stop all processes of a rank after `at_s` seconds, for `for_s` seconds."""

    rank: int
    at_s: float
    for_s: float


@dataclass(frozen=True, slots=True)
class PauseHost:
    """Stop all ranks of a host for `for_s` seconds, every `every_s` seconds.

    The first pause starts `every_s` seconds after the start.
    """

    host: int
    for_s: float
    every_s: float

    def __post_init__(self) -> None:
        if not self.every_s >= MIN_EVERY_S:
            allowed = f"repeated after at least {MIN_EVERY_S:g} s"
            raise InvalidValueError("pause", self.every_s, allowed)
        if not 0 < self.for_s < self.every_s:
            allowed = f"above 0 s and shorter than its period of {self.every_s:g} s"
            raise InvalidValueError("pause", self.for_s, allowed)


@dataclass(frozen=True, slots=True)
class Cut:
    """Cut the link of a host after `at_s` seconds, for good: all packets are dropped, without an error."""

    host: int
    at_s: float


Trouble = Kill | Pause | PauseHost | Cut


def check_troubles(troubles: Sequence[Trouble], num_hosts: int, ranks_per_host: int) -> None:
    """Raise InvalidValueError for a rank or a host that does not exist."""
    for trouble in troubles:
        if isinstance(trouble, Kill | Pause):
            kind, number, limit = "rank", trouble.rank, num_hosts * ranks_per_host
        else:
            kind, number, limit = "host", trouble.host, num_hosts
        if not 0 <= number < limit:
            name = "pause" if isinstance(trouble, PauseHost) else type(trouble).__name__.lower()
            raise InvalidValueError(name, number, f"a {kind} from 0 to {limit - 1}")
