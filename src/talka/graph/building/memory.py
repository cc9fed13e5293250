"""Would a graph fit into memory? Asked before any of it is taken."""

from talka.errors import GraphTooLargeError
from talka.machine import available_memory_bytes
from talka.units import format_bytes, format_count

BUILD_BYTES = 24
"""For an edge at the peak: rows of both directions, entries on their way, slots of its ends."""
WEIGHT_BYTES = 24
"""More for its weight: in both directions and on its way."""
READ_BYTES = 16
"""More for an edge that comes from a file: the ids of its ends."""


def check_it_fits(num_edges: float, *, is_weighted: bool, is_read: bool) -> None:
    needed = num_edges * (
        BUILD_BYTES + WEIGHT_BYTES * is_weighted + (READ_BYTES + 8 * is_weighted) * is_read
    )
    available = available_memory_bytes()
    if needed > available:
        size = f"{format_count(num_edges)} edges"
        raise GraphTooLargeError(size, format_bytes(needed), format_bytes(available))
