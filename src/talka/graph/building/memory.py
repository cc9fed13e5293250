"""Check whether a graph will fit into memory, before any is allocated."""

from talka.errors import GraphTooLargeError
from talka.machine import available_memory_bytes
from talka.units import format_bytes, format_count

BUILD_BYTES = 24
"""Peak bytes per edge: rows of both directions, entries being grouped, slots of its ends."""
WEIGHT_BYTES = 24
"""Additional bytes per edge with a weight: in both directions and while being grouped."""
READ_BYTES = 16
"""Additional bytes per edge that is read from a file: the ids of its ends."""


def check_it_fits(num_edges: float, *, is_weighted: bool, is_read: bool) -> None:
    """Raise GraphTooLargeError if this many edges need more memory than is available."""
    needed = num_edges * (
        BUILD_BYTES + WEIGHT_BYTES * is_weighted + (READ_BYTES + 8 * is_weighted) * is_read
    )
    available = available_memory_bytes()
    if needed > available:
        size = f"{format_count(num_edges)} edges"
        raise GraphTooLargeError(size, format_bytes(needed), format_bytes(available))
