"""Would a graph fit into memory? Asked before any of it is taken."""

import re
from pathlib import Path

from talka.engine.embedded import usable_memory_bytes
from talka.errors import GraphTooLargeError
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


def available_memory_bytes() -> int:
    """What can be taken now without pushing anything out."""
    found = re.search(r"MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text())
    usable = usable_memory_bytes()
    return min(usable, int(found[1]) * 1024) if found else usable
