"""The share of time each worker was busy between the first task and the last."""

import math
from collections import defaultdict
from typing import ClassVar

from talka.engine.events import TasksRan
from talka.events import Event, RunRecord, Stamped
from talka.report.base import PageSection, ReportSection, natural_order
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


class _Share:
    """Sums over the tasks of one worker."""

    __slots__ = ("busy_s", "count", "output_bytes")

    def __init__(self) -> None:
        self.count, self.output_bytes, self.busy_s = 0, 0, 0.0


class WorkerShares:
    """Tasks of each worker, and the period from the first task to the last."""

    KINDS: ClassVar[tuple[type[Event], ...]] = (TasksRan,)

    def __init__(self) -> None:
        self.workers: defaultdict[str, _Share] = defaultdict(_Share)
        self._start_s, self._end_s = math.inf, -math.inf

    def add(self, stamped: Stamped) -> None:
        """Add an event."""
        event = stamped.event
        assert isinstance(event, TasksRan)
        share = self.workers[event.worker]
        share.count += event.count
        share.output_bytes += event.output_bytes
        share.busy_s += event.busy_s
        self._start_s = min(self._start_s, event.start_s)
        self._end_s = max(self._end_s, event.end_s)

    @property
    def window_s(self) -> float:
        """Seconds from the start of the first task to the end of the last."""
        return self._end_s - self._start_s


def workers_section(record: RunRecord) -> ReportSection | None:
    """Build the table of workers; None for a run without tasks."""
    shares = record.fold(WorkerShares)
    if not shares.workers:
        return None
    window_s = shares.window_s
    workers = sorted(shares.workers, key=natural_order)
    rows = [_row(worker, shares.workers[worker], window_s) for worker in workers[:MAX_TABLE_ROWS]]
    num_left = len(workers) - MAX_TABLE_ROWS
    rest = note(f"{num_left} more workers") if num_left > 0 else ""
    window = note(f"Shares of the {format_seconds(window_s)} from the first task to the last.")
    return ReportSection("Busy share per worker", window + table(_COLUMNS, rows) + rest)


WORKERS = PageSection(workers_section, (WorkerShares,), pillar="engine")


def _row(worker: str, worked: _Share, window_s: float) -> list[str]:
    share = worked.busy_s / window_s if window_s > 0 else 0.0
    width = f"{100 * min(max(share, 0.0), 1.0):.1f}%"
    return [
        f"<code>{escaped(worker)}</code>",
        f"{worked.count:,}",
        format_bytes(worked.output_bytes),
        format_seconds(worked.busy_s),
        f"{share:.0%}",
        f'<div class="share"><div style="width:{width}"></div></div>',
    ]
