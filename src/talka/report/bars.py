"""Who did what from when to when, as bars; short neighbours melt together where there are many.

events -> bars (one per stretch of tasks, one per phase) -> at most MAX_BARS of them
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from talka.events import PhaseEnded, PhaseStarted, RunRecord, TasksRan
from talka.report.base import span_of

MAX_BARS = 4000  # a browser draws these at once; 20,000 take seconds at every zoom
_MAX_DOUBLINGS = 64  # a span too short to be halved would never be reached
SEVERAL = "several"
OTHERS = "others"
_NUMBER = re.compile(r"(?<=/)\d+(?=/|$)")


class Bar(NamedTuple):
    """One bar in one row of the timeline; times in seconds since 1970."""

    row: str
    kind: str
    """What gives it its colour: `superstep/3` is of the kind `superstep/*`."""
    name: str
    start_s: float
    end_s: float
    num_pieces: int
    """Tasks in it, or phases."""
    busy_s: float
    output_bytes: int | None
    """None for phases: only tasks have outputs."""


def bars_of(record: RunRecord) -> list[Bar]:
    return _phase_bars(record) + [
        Bar(
            row=event.worker,
            kind=event.name,
            name=event.name,
            start_s=event.start_s,
            end_s=max(event.start_s, event.end_s),
            num_pieces=event.count,
            busy_s=event.busy_s,
            output_bytes=event.output_bytes,
        )
        for event in (stamped.event for stamped in record.events)
        if isinstance(event, TasksRan)
    ]


def _phase_bars(record: RunRecord) -> list[Bar]:
    """One bar per phase; a phase that never ended goes on to the end of the run."""
    bars = []
    open_phases: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for time_s, source, event in record.events:
        if isinstance(event, PhaseStarted):
            open_phases[source, event.cost_id].append(time_s)
        elif isinstance(event, PhaseEnded) and open_phases[source, event.cost_id]:
            start_s = open_phases[source, event.cost_id].pop()
            bars.append(_phase_bar(source, event.cost_id, start_s, time_s))
    end_s = span_of(record).end_s
    for (source, cost_id), starts in open_phases.items():
        for start_s in starts:
            bars.append(_phase_bar(source, cost_id, start_s, end_s, ended=False))
    return _in_lanes(bars)


def _phase_bar(
    source: str, cost_id: str, start_s: float, end_s: float, *, ended: bool = True
) -> Bar:
    name = cost_id if ended else f"{cost_id} (did not end)"
    return Bar(source, kind_of(cost_id), name, start_s, end_s, 1, end_s - start_s, None)


def kind_of(cost_id: str) -> str:
    """What parts have in common that differ only in a number.

    >>> kind_of("stage/2/exchange"), kind_of("superstep/31"), kind_of("train")
    ('stage/*/exchange', 'superstep/*', 'train')
    """
    return _NUMBER.sub("*", cost_id)


def _in_lanes(bars: Iterable[Bar]) -> list[Bar]:
    """A phase inside of another one gets a row of its own below."""
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
    """The kinds that took longest keep their names; the rest become `others`."""
    busy_s: defaultdict[str, float] = defaultdict(float)
    for bar in bars:
        busy_s[bar.kind] += bar.busy_s
    longest = set(sorted(busy_s, key=lambda kind: -busy_s[kind])[:max_kinds])
    return [bar if bar.kind in longest else bar._replace(kind=OTHERS) for bar in bars]


def melted(bars: Sequence[Bar], *, max_bars: int = MAX_BARS) -> list[Bar]:
    """At most `max_bars` (and at least one per row): neighbours too close to see become one bar."""
    if len(bars) <= max_bars:
        return list(bars)
    rows: defaultdict[str, list[Bar]] = defaultdict(list)
    for bar in sorted(bars, key=lambda bar: bar.start_s):
        rows[bar.row].append(bar)
    span_s = max(bar.end_s for bar in bars) - min(bar.start_s for bar in bars)
    width_s = span_s / max_bars
    few = list(bars)
    for _ in range(_MAX_DOUBLINGS):
        few = [bar for row in rows.values() for bar in _melt_row(row, width_s)]
        if len(few) <= max(max_bars, len(rows)) or width_s > span_s:
            break
        width_s *= 2
    return few


def _melt_row(bars: Iterable[Bar], width_s: float) -> list[Bar]:
    few: list[Bar] = []
    for bar in bars:
        if few and _are_one(few[-1], bar, width_s):
            few[-1] = _joined(few[-1], bar)
        else:
            few.append(bar)
    return few


def _are_one(before: Bar, bar: Bar, width_s: float) -> bool:
    if before.kind == bar.kind and bar.start_s - before.end_s <= width_s:
        return True
    return max(before.end_s, bar.end_s) - before.start_s <= width_s


def _joined(before: Bar, bar: Bar) -> Bar:
    known_bytes = [one.output_bytes for one in (before, bar) if one.output_bytes is not None]
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
