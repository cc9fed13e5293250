"""The share of time each worker was busy between the first task and the last."""

from collections import defaultdict
from collections.abc import Sequence

from talka.engine.events import TasksRan
from talka.events import RunRecord
from talka.report.base import ReportSection, natural_order
from talka.report.markup import MAX_TABLE_ROWS, Column, escaped, note, table
from talka.units import format_bytes, format_seconds

_COLUMNS = (
    Column("worker"),
    Column("tasks", "number"),
    Column("output", "number"),
    Column("busy", "number"),
    Column("share", "number"),
    Column("", "share"),
)


def workers_section(record: RunRecord) -> ReportSection | None:
    """Build the table of workers; None for a run without tasks."""
    of_workers: defaultdict[str, list[TasksRan]] = defaultdict(list)
    for stamped in record.events:
        if isinstance(stamped.event, TasksRan):
            of_workers[stamped.event.worker].append(stamped.event)
    if not of_workers:
        return None
    ran = [event for events in of_workers.values() for event in events]
    window_s = max(event.end_s for event in ran) - min(event.start_s for event in ran)
    workers = sorted(of_workers, key=natural_order)
    rows = [_row(worker, of_workers[worker], window_s) for worker in workers[:MAX_TABLE_ROWS]]
    num_left = len(workers) - MAX_TABLE_ROWS
    rest = note(f"{num_left} more workers") if num_left > 0 else ""
    window = note(f"Shares of the {format_seconds(window_s)} from the first task to the last.")
    return ReportSection("Busy share per worker", window + table(_COLUMNS, rows) + rest)


def _row(worker: str, ran: Sequence[TasksRan], window_s: float) -> list[str]:
    busy_s = sum(event.busy_s for event in ran)
    share = busy_s / window_s if window_s > 0 else 0.0
    width = f"{100 * min(max(share, 0.0), 1.0):.1f}%"
    return [
        f"<code>{escaped(worker)}</code>",
        f"{sum(event.count for event in ran):,}",
        format_bytes(sum(event.output_bytes for event in ran)),
        format_seconds(busy_s),
        f"{share:.0%}",
        f'<div class="share"><div style="width:{width}"></div></div>',
    ]
