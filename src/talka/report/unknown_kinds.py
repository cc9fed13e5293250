"""Events of kinds that are not registered: their names, how many there are, and what they hold."""

from collections import Counter
from typing import ClassVar

from talka.events import Event, RunRecord, Stamped, Unknown
from talka.report.base import PageSection, ReportSection
from talka.report.markup import MAX_TABLE_ROWS, Column, escaped, note, table

_MAX_CHARACTERS = 200
_COLUMNS = (Column("kind"), Column("events", "number"), Column("fields", "long"))


class UnknownKinds:
    """Number of events of each unknown kind, and the names of their fields."""

    KINDS: ClassVar[tuple[type[Event], ...]] = (Unknown,)

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.fields: dict[str, str] = {}
        """Names of the fields of the first event of each kind."""

    def add(self, stamped: Stamped) -> None:
        """Add an event."""
        event = stamped.event
        assert isinstance(event, Unknown)
        self.counts[event.kind] += 1
        if event.kind not in self.fields:
            names = ", ".join(event.fields)
            is_long = len(names) > _MAX_CHARACTERS
            self.fields[event.kind] = f"{names[:_MAX_CHARACTERS]} …" if is_long else names


def unknown_kinds_section(record: RunRecord) -> ReportSection | None:
    """Build the table of unknown kinds; None if there are none."""
    kinds = record.fold(UnknownKinds)
    if not kinds.counts:
        return None
    rows = [
        [f"<code>{escaped(kind)}</code>", f"{count:,}", escaped(kinds.fields[kind])]
        for kind, count in kinds.counts.most_common(MAX_TABLE_ROWS)
    ]
    num_left = len(kinds.counts) - MAX_TABLE_ROWS
    rest = note(f"{num_left} more kinds") if num_left > 0 else ""
    text = note("Written by a newer version of talka, or by a package that is not imported here.")
    return ReportSection("Other events", text + table(_COLUMNS, rows) + rest)


UNKNOWN_KINDS = PageSection(unknown_kinds_section, (UnknownKinds,))
