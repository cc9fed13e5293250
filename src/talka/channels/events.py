"""Events of messages between processes."""

from dataclasses import dataclass

from talka.events.registry import Event, register


@register
@dataclass(frozen=True, slots=True)
class CollectivesRan(Event):
    """One rank ran a collective several times with about the same number of bytes."""

    name: str
    """Name of the collective, such as `all_reduce`."""
    algorithm: str
    num_calls: int
    num_bytes: int
    """Bytes of the value of one rank, in all calls."""
    seconds: float
    """Seconds that all calls took on this rank, waiting for the others included."""
    predicted_s: float | None
    """Seconds of all calls by the link model; None if the network is not known."""
