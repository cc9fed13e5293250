"""Events of runs in a lab: its hosts and troubles at the start, traffic and exit codes at the end."""

from dataclasses import dataclass
from typing import Literal

from talka.events.registry import Event, register


@register
@dataclass(frozen=True, slots=True)
class HostJoined(Event):
    """A host takes part in a run."""

    host: int
    address: str
    rate_bits_per_s: float
    """Bits per second of the host's link, in each direction."""
    latency_s: float
    """Seconds that are added to the way of every packet to another host."""
    cores: float | None
    """Processor quota in cores; None if the host has none."""
    num_ranks: int


@register
@dataclass(frozen=True, slots=True)
class TroublePlanned(Event):
    """A trouble that was asked for: a rank is killed or paused, a host is paused, or a link is cut."""

    kind: Literal["kill", "pause", "cut"]
    target: Literal["rank", "host"]
    number: int
    """Number of the rank or of the host."""
    at_s: float
    """Seconds after the start of the run."""
    for_s: float | None = None
    """Seconds that a pause lasts; None for other troubles."""
    every_s: float | None = None
    """Seconds between the starts of two pauses; None if there is one."""


@register
@dataclass(frozen=True, slots=True)
class HostCounted(Event):
    """Traffic of a host during a run, headers included."""

    host: int
    sent_bytes: int
    received_bytes: int


@register
@dataclass(frozen=True, slots=True)
class RankExited(Event):
    """A rank ended. The events of all ranks are written at the end of the run."""

    rank: int
    host: int
    exit_code: int
    """Exit code; a negative number is the signal that killed the rank."""
