"""Choices that the plan considered and did not take, with their cost and the reason."""

from typing import ClassVar

from talka.events import Considered, Event, RunRecord, Stamped
from talka.report.base import PageSection, ReportSection
from talka.report.markup import MAX_TABLE_ROWS, Column, escaped, note, table
from talka.units import format_bytes, format_seconds

_COLUMNS = (
    Column("cost"),
    Column("choice"),
    Column("time", "number"),
    Column("bytes", "number"),
    Column("why it was not taken", "long"),
)


class LostChoices:
    """The last event of each choice for each cost id."""

    KINDS: ClassVar[tuple[type[Event], ...]] = (Considered,)

    def __init__(self) -> None:
        self.events: dict[tuple[str, str], Considered] = {}

    def add(self, stamped: Stamped) -> None:
        """Add an event."""
        event = stamped.event
        assert isinstance(event, Considered)
        self.events[event.cost_id, event.choice] = event


def choices_section(record: RunRecord) -> ReportSection | None:
    """Build the table of choices; None if the plan had none."""
    lost = list(record.fold(LostChoices).events.values())
    if not lost:
        return None
    rows = [_cells(event) for event in lost[:MAX_TABLE_ROWS]]
    num_left = len(lost) - MAX_TABLE_ROWS
    rest = note(f"{num_left} more choices") if num_left > 0 else ""
    return ReportSection("Other choices of the plan", table(_COLUMNS, rows) + rest)


def _cells(event: Considered) -> list[str]:
    return [
        f"<code>{escaped(event.cost_id)}</code>",
        escaped(event.choice),
        "" if event.seconds is None else format_seconds(event.seconds),
        "" if event.sent_bytes is None else format_bytes(event.sent_bytes),
        escaped(event.why_not),
    ]


CHOICES = PageSection(choices_section, (LostChoices,))
