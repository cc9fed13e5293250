"""Errors with their tracebacks, lost workers, and tasks that ran again with the reason."""

from collections import Counter
from collections.abc import Sequence

from talka.engine.events import TaskAgain, WorkerLost
from talka.events import Failure, RunRecord, Stamped
from talka.report.base import ReportSection, span_of
from talka.report.markup import MAX_TABLE_ROWS, Column, escaped, note, table
from talka.units import format_seconds

MAX_FAILURES = 50


def troubles_section(record: RunRecord) -> ReportSection | None:
    """Build the section of problems; None if there were none, as the summary then shows zeros."""
    failures = [stamped for stamped in record.events if isinstance(stamped.event, Failure)]
    losses = [stamped for stamped in record.events if isinstance(stamped.event, WorkerLost)]
    again = [stamped.event for stamped in record.events if isinstance(stamped.event, TaskAgain)]
    start_s = span_of(record).start_s
    body = _failures(failures, start_s) + _losses(losses, start_s) + _again(again)
    if record.num_unreadable_lines:
        body += note(
            f"Lines of the event files that could not be read: {record.num_unreadable_lines} "
            f"({record.num_damaged_lines} damaged, the others cut off when their writer was killed "
            "or written by a newer version)."
        )
    return ReportSection("What went wrong", body) if body else None


def _failures(failures: Sequence[Stamped], start_s: float) -> str:
    shown = "".join(_failure(stamped, start_s) for stamped in failures[:MAX_FAILURES])
    num_left = len(failures) - MAX_FAILURES
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
            f"<code>{escaped(stamped.event.worker)}</code>",
            format_seconds(stamped.time_s - start_s),
            escaped(stamped.event.reason),
        ]
        for stamped in losses[:MAX_TABLE_ROWS]
        if isinstance(stamped.event, WorkerLost)
    ]
    return table(columns, rows)


def _again(again: Sequence[TaskAgain]) -> str:
    if not again:
        return ""
    counts = Counter((event.reason, event.name) for event in again)
    columns = [Column("tasks run again"), Column("times", "number"), Column("reason", "long")]
    rows = [
        [f"<code>{escaped(name)}</code>", f"{count:,}", escaped(reason)]
        for (reason, name), count in counts.most_common(MAX_TABLE_ROWS)
    ]
    return table(columns, rows)
