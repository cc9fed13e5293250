"""What the driver hears of a superstep of one partition: plain values."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Report:
    """Counts of one partition."""

    num_active: int = 0
    active_edges: int = 0
    way: str = ""
    edges: int = 0
    """That were walked along."""
    num_messages: int = 0
    """That left the partition."""
    sent_bytes: int = 0
    is_quiet: bool = True
    """Nothing was said at all, not even to itself."""
    rounds: int = 1
    totals: dict[str, list[float]] = field(default_factory=dict)
    """Aggregates, still in pieces that the driver combines."""

    def as_plain(self) -> dict[str, Any]:
        return vars(self)  # asdict would copy every value, for each task

    @staticmethod
    def merged(plain: list[dict[str, Any]]) -> "Report":
        """The reports of the tasks that one partition's superstep was made of."""
        merged = Report(**plain[0])
        for more in plain[1:]:
            other = Report(**more)
            merged.edges += other.edges
            merged.num_messages += other.num_messages
            merged.sent_bytes += other.sent_bytes
            merged.is_quiet, merged.way = other.is_quiet, other.way
        return merged
