"""Collectives of all ranks, with their seconds beside those of the link model."""

from collections import defaultdict
from typing import ClassVar

from talka.channels.events import CollectivesRan
from talka.events import Event, RunRecord, Stamped
from talka.report.base import PageSection, ReportSection
from talka.report.markup import MAX_TABLE_ROWS, Column, escaped, note, table
from talka.units import format_bytes, format_seconds

_COLUMNS = (
    Column("collective"),
    Column("algorithm"),
    Column("calls", "number"),
    Column("bytes per call", "number"),
    Column("seconds per call", "number"),
    Column("predicted", "number"),
    Column("measured/predicted", "number"),
)


class _Calls:
    """Sums over the calls of one collective by one algorithm, with about the same bytes."""

    __slots__ = ("num_bytes", "num_calls", "num_predicted", "predicted_s", "seconds")

    def __init__(self) -> None:
        self.num_calls = self.num_bytes = self.num_predicted = 0
        self.seconds = self.predicted_s = 0.0


class CollectiveCalls:
    """Calls by collective, algorithm and size, over all ranks."""

    KINDS: ClassVar[tuple[type[Event], ...]] = (CollectivesRan,)

    def __init__(self) -> None:
        self.calls: defaultdict[tuple[str, str, int], _Calls] = defaultdict(_Calls)

    def add(self, stamped: Stamped) -> None:
        """Add an event."""
        event = stamped.event
        assert isinstance(event, CollectivesRan)
        num_calls = max(1, event.num_calls)
        key = (event.name, event.algorithm, (event.num_bytes // num_calls).bit_length())
        calls = self.calls[key]
        calls.num_calls += num_calls
        calls.num_bytes += event.num_bytes
        calls.seconds += event.seconds
        if event.predicted_s is not None:
            calls.num_predicted += num_calls
            calls.predicted_s += event.predicted_s


def collectives_section(record: RunRecord) -> ReportSection | None:
    """Build the table of collectives; None for a run without any."""
    calls = record.fold(CollectiveCalls).calls
    if not calls:
        return None
    rows = [
        _row(name, algorithm, calls[name, algorithm, size])
        for name, algorithm, size in sorted(calls)
    ]
    text = note("Means over the calls of all ranks. Seconds include waiting for other ranks.")
    return ReportSection("Collectives", text + table(_COLUMNS, rows[:MAX_TABLE_ROWS]))


COLLECTIVES = PageSection(collectives_section, (CollectiveCalls,), pillar="channels")


def _row(name: str, algorithm: str, calls: _Calls) -> list[str]:
    seconds = calls.seconds / calls.num_calls
    predicted_s = calls.predicted_s / calls.num_predicted if calls.num_predicted else 0.0
    return [
        f"<code>{escaped(name)}</code>",
        escaped(algorithm),
        f"{calls.num_calls:,}",
        format_bytes(calls.num_bytes / calls.num_calls),
        format_seconds(seconds),
        format_seconds(predicted_s) if predicted_s else "",
        f"{seconds / predicted_s:.2f}" if predicted_s else "",
    ]
