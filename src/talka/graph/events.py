"""Events of graph programs."""

from dataclasses import dataclass

from talka.events.registry import Event, register


@register
@dataclass(frozen=True, slots=True)
class SuperstepDone(Event):
    """All partitions finished one superstep of a graph program."""

    superstep: int
    """Number of the superstep; the first is 0, and a resumed run continues to count."""
    num_active: int
    """Vertices that are active after the superstep."""
    num_messages: int
    """Messages from one partition to another."""
    sent_bytes: int
    """Bytes sent from one partition to another."""
    edges: int
    """Edges that were traversed."""
    pushed: int
    """Partitions that pushed messages along the edges of active vertices."""
    pulled: int
    """Partitions that pulled messages along all edges into their vertices."""
    seconds: float
    """Seconds from the start of the superstep to its end."""
