"""Bars of the timeline: which row was busy with which work, from when to when.

events -> bars (one per TasksRan event, one per phase) -> at most MAX_BARS, short neighbours merged
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple

from talka.engine.events import TasksRan, WorkerLost
from talka.events import Event, PhaseEnded, PhaseStarted, Stamped

MAX_BARS = 4000  # a browser draws these at once; 20,000 take seconds at every zoom
MAX_KEPT = 10 * MAX_BARS
_MAX_DOUBLINGS = 64  # doubling a width of zero or of a tiny fraction might never reach the span
SEVERAL = "several"
OTHERS = "others"
_NUMBER = re.compile(r"(?<=/)\d+(?=/|$)")


class Bar(NamedTuple):
    """One bar in one row of the timeline; times in seconds since 1970."""

    row: str
    kind: str
    """Kind of work, which determines the colour: `superstep/3` is of the kind `superstep/*`."""
    name: str
    start_s: float
    end_s: float
    num_pieces: int
    """Number of tasks or phases that the bar stands for."""
    busy_s: float
    output_bytes: int | None
    """Bytes of the tasks' outputs; None for phases, which have no outputs."""


class TimelineBars:
    """Bars of all phases and tasks, collected while they arrive, and the workers that were lost."""

    KINDS: ClassVar[tuple[type[Event], ...]] = (TasksRan, PhaseStarted, PhaseEnded, WorkerLost)

    def __init__(self) -> None:
        self.losses: list[tuple[float, WorkerLost]] = []
        """Lost workers, and when they were lost."""
        self.num_tasks_merged = 0
        """Number of bars of tasks that were merged with others as there were too many to keep."""
        self._tasks: list[Bar] = []
        self._phases: list[Bar] = []
        self._open_phases: defaultdict[tuple[str, str], list[float]] = defaultdict(list)

    def add(self, stamped: Stamped) -> None:
        """Add an event."""
        time_s, source, event = stamped
        if isinstance(event, TasksRan):
            self._tasks.append(_task_bar(event))
            if len(self._tasks) > MAX_KEPT:
                kept = merged(self._tasks, max_bars=MAX_KEPT // 2)
                self.num_tasks_merged += len(self._tasks) - len(kept)
                self._tasks = kept
        elif isinstance(event, PhaseStarted):
            self._open_phases[source, event.cost_id].append(time_s)
        elif isinstance(event, PhaseEnded) and self._open_phases[source, event.cost_id]:
            start_s = self._open_phases[source, event.cost_id].pop()
            self._phases.append(_phase_bar(source, event.cost_id, start_s, time_s))
        elif isinstance(event, WorkerLost):
            self.losses.append((time_s, event))

    def bars(self, end_s: float) -> list[Bar]:
        """Return all bars; a phase that did not end lasts until `end_s`, the end of the run."""
        open_phases = [
            _phase_bar(source, cost_id, start_s, end_s, ended=False)
            for (source, cost_id), starts in self._open_phases.items()
            for start_s in starts
        ]
        return _in_lanes(self._phases + open_phases) + self._tasks


def _task_bar(event: TasksRan) -> Bar:
    return Bar(
        row=event.worker,
        kind=event.name,
        name=event.name,
        start_s=event.start_s,
        end_s=max(event.start_s, event.end_s),
        num_pieces=event.count,
        busy_s=event.busy_s,
        output_bytes=event.output_bytes,
    )


def _phase_bar(
    source: str, cost_id: str, start_s: float, end_s: float, *, ended: bool = True
) -> Bar:
    name = cost_id if ended else f"{cost_id} (did not end)"
    return Bar(source, kind_of(cost_id), name, start_s, end_s, 1, end_s - start_s, None)


def kind_of(cost_id: str) -> str:
    """Replace the numbers in a cost id by `*`, so that ids differing only in them are one kind.

    >>> kind_of("stage/2/exchange"), kind_of("superstep/31"), kind_of("train")
    ('stage/*/exchange', 'superstep/*', 'train')
    """
    return _NUMBER.sub("*", cost_id)


def _in_lanes(bars: Iterable[Bar]) -> list[Bar]:
    """Put phases that overlap another phase of the same row into additional rows below."""
    placed = []
    free_from_s: defaultdict[str, list[float]] = defaultdict(list)
    for bar in sorted(bars, key=lambda bar: (bar.start_s, -bar.end_s)):
        lanes = free_from_s[bar.row]
        lane = next((i for i, free_s in enumerate(lanes) if free_s <= bar.start_s), len(lanes))
        lanes[lane : lane + 1] = [bar.end_s]
        suffix = ("", " (inner)")[lane] if lane < 2 else f" (inner {lane})"
        placed.append(bar._replace(row=f"{bar.row}{suffix}"))
    return placed


def with_few_kinds(bars: Sequence[Bar], *, max_kinds: int) -> list[Bar]:
    """Keep the `max_kinds` kinds with most busy time and relabel the rest as `others`."""
    busy_s: defaultdict[str, float] = defaultdict(float)
    for bar in bars:
        busy_s[bar.kind] += bar.busy_s
    longest = set(sorted(busy_s, key=lambda kind: -busy_s[kind])[:max_kinds])
    return [bar if bar.kind in longest else bar._replace(kind=OTHERS) for bar in bars]


def merged(bars: Sequence[Bar], *, max_bars: int = MAX_BARS) -> list[Bar]:
    """Merge neighbours too close to distinguish until at most `max_bars` or one per row remain.

    The width below which neighbours are merged is doubled until the result is short enough.
    """
    if len(bars) <= max_bars:
        return list(bars)
    rows: defaultdict[str, list[Bar]] = defaultdict(list)
    for bar in sorted(bars, key=lambda bar: bar.start_s):
        rows[bar.row].append(bar)
    span_s = max(bar.end_s for bar in bars) - min(bar.start_s for bar in bars)
    width_s = span_s / max_bars
    remaining = list(bars)
    for _ in range(_MAX_DOUBLINGS):
        remaining = [bar for row in rows.values() for bar in _merge_row(row, width_s)]
        if len(remaining) <= max(max_bars, len(rows)) or width_s > span_s:
            break
        width_s *= 2
    return remaining


def _merge_row(bars: Iterable[Bar], width_s: float) -> list[Bar]:
    row: list[Bar] = []
    for bar in bars:
        if row and _are_close(row[-1], bar, width_s):
            row[-1] = _joined(row[-1], bar)
        else:
            row.append(bar)
    return row


def _are_close(before: Bar, bar: Bar, width_s: float) -> bool:
    if before.kind == bar.kind and bar.start_s - before.end_s <= width_s:
        return True
    return max(before.end_s, bar.end_s) - before.start_s <= width_s


def _joined(before: Bar, bar: Bar) -> Bar:
    known_bytes = [each.output_bytes for each in (before, bar) if each.output_bytes is not None]
    same_kind = before.kind == bar.kind
    return Bar(
        row=bar.row,
        kind=bar.kind if same_kind else SEVERAL,
        name=bar.name if before.name == bar.name else bar.kind if same_kind else SEVERAL,
        start_s=before.start_s,
        end_s=max(before.end_s, bar.end_s),
        num_pieces=before.num_pieces + bar.num_pieces,
        busy_s=before.busy_s + bar.busy_s,
        output_bytes=sum(known_bytes) if known_bytes else None,
    )
