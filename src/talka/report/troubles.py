"""Errors with their tracebacks, lost workers, and tasks that ran again with the reason."""

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from talka.engine.events import RankLost, TaskAgain, WorkerLost
from talka.events import Event, Failure, RunRecord, Stamped
from talka.report.base import PageSection, ReportSection, span_of
from talka.report.markup import MAX_TABLE_ROWS, Column, escaped, note, table
from talka.units import format_seconds

MAX_FAILURES = 50


class Troubles:
    """Errors and losses of a run, the first ones of many."""

    KINDS: ClassVar[tuple[type[Event], ...]] = (Failure, WorkerLost, RankLost, TaskAgain)

    def __init__(self) -> None:
        self.failures: list[Stamped] = []
        self.num_failures = 0
        self.losses: list[Stamped] = []
        self.again: Counter[tuple[str, str]] = Counter()
        """Number of tasks that ran again, by reason and name."""

    def add(self, stamped: Stamped) -> None:
        """Add an event."""
        event = stamped.event
        if isinstance(event, TaskAgain):
            self.again[event.reason, event.name] += 1
        elif isinstance(event, Failure):
            self.num_failures += 1
            if len(self.failures) < MAX_FAILURES:
                self.failures.append(stamped)
        elif len(self.losses) < MAX_TABLE_ROWS:
            self.losses.append(stamped)


def troubles_section(record: RunRecord) -> ReportSection | None:
    """Build the section of problems; None if there were none, as the summary then shows zeros."""
    troubles = record.fold(Troubles)
    start_s = span_of(record).start_s
    body = _failures(troubles, start_s) + _losses(troubles.losses, start_s) + _again(troubles.again)
    if record.num_unreadable_lines:
        body += note(
            f"Lines of the event files that could not be read: {record.num_unreadable_lines} "
            f"({record.num_damaged_lines} damaged, the others cut off when their writer was killed)."
        )
    return ReportSection("What went wrong", body) if body else None


TROUBLES = PageSection(troubles_section, (Troubles,))


def _failures(troubles: Troubles, start_s: float) -> str:
    shown = "".join(_failure(stamped, start_s) for stamped in troubles.failures)
    num_left = troubles.num_failures - len(troubles.failures)
    return shown + (note(f"{num_left} more errors") if num_left > 0 else "")


def _failure(stamped: Stamped, start_s: float) -> str:
    failure = stamped.event
    assert isinstance(failure, Failure)
    where = f"{stamped.source}, after {format_seconds(stamped.time_s - start_s)}"
    detail = ""
    if failure.detail:
        detail = (
            f"<details><summary>Traceback</summary><pre>{escaped(failure.detail)}</pre></details>"
        )
    return (
        f'<div class="failure"><p class="message">{escaped(failure.message)}</p>'
        f'<p class="note">{escaped(where)}</p>{detail}</div>'
    )


def _losses(losses: Sequence[Stamped], start_s: float) -> str:
    if not losses:
        return ""
    columns = [Column("lost worker"), Column("after", "number"), Column("reason", "long")]
    rows = [
        [
            f"<code>{escaped(_lost(stamped.event))}</code>",
            format_seconds(stamped.time_s - start_s),
            escaped(stamped.event.reason),
        ]
        for stamped in losses
        if isinstance(stamped.event, WorkerLost | RankLost)
    ]
    return table(columns, rows)


def _lost(event: WorkerLost | RankLost) -> str:
    """Return the name of a worker that was lost."""
    if isinstance(event, WorkerLost):
        return event.worker
    return f"rank {event.rank} ({event.role})"


def _again(counts: Counter[tuple[str, str]]) -> str:
    if not counts:
        return ""
    columns = [Column("tasks run again"), Column("times", "number"), Column("reason", "long")]
    rows = [
        [f"<code>{escaped(name)}</code>", f"{count:,}", escaped(reason)]
        for (reason, name), count in counts.most_common(MAX_TABLE_ROWS)
    ]
    return table(columns, rows)
