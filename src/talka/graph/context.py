"""What all partitions are told before a superstep."""

from typing import NamedTuple


class Context(NamedTuple):
    superstep: int
    num_vertices: int
    is_last: bool
    """Nobody will hear what is said now."""
    aggregates: dict[str, float]
    num_threads: int
