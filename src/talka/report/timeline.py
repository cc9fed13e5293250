"""The timeline: one row per worker and per process with phases, one colour per kind of work."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from talka.events import RunRecord
from talka.report.bars import OTHERS, SEVERAL, Bar, TimelineBars, merged, with_few_kinds
from talka.report.base import PageSection, ReportSection, TimeSpan, natural_order, span_of
from talka.report.markup import note
from talka.report.plotting.figure import Figure
from talka.report.plotting.plots import (
    ALARM,
    NEUTRAL,
    PALETTE,
    horizontal_bars,
    label,
    row_labels,
    seconds_axis,
)
from talka.units import format_bytes, format_count, format_seconds

MAX_ROWS = 64
NARROWEST = 1 / 1000  # least width as a share of the plot: about a pixel, so every bar is visible


def timeline_section(record: RunRecord) -> ReportSection | None:
    """Build the timeline; None for a run without tasks and phases."""
    timeline = record.fold(TimelineBars)
    bars = timeline.bars(span_of(record).end_s)
    if not bars:
        return None
    rows = sorted({bar.row for bar in bars}, key=_row_order)
    shown = row_labels(rows[:MAX_ROWS])
    of_rows = [bar._replace(row=shown[bar.row]) for bar in bars if bar.row in shown]
    drawn = merged(with_few_kinds(of_rows, max_kinds=len(_LOOKS)))
    num_bars = len(of_rows) + timeline.num_tasks_merged
    span = _span(record, bars)
    figure = horizontal_bars(num_rows=len(shown), row_px=30, barmode="overlay")
    figure.update_yaxes(categoryorder="array", categoryarray=list(shown.values()))
    seconds_axis(figure, span.seconds, "since the start of the run")
    for kind, look in _looks(drawn).items():
        _add(figure, kind, [bar for bar in drawn if bar.kind == kind], look, span)
    _add_losses(figure, timeline, shown, span)
    return ReportSection(
        "Timeline",
        _notes(num_bars, len(drawn), len(rows), len(shown)) + figure.as_html("timeline"),
    )


TIMELINE = PageSection(timeline_section, (TimelineBars,))


def _row_order(row: str) -> tuple[bool, list[tuple[int, str]]]:
    return not row.startswith("driver"), natural_order(row)


def _span(record: RunRecord, bars: Sequence[Bar]) -> TimeSpan:
    """Return the run's period, extended to bars of workers whose clocks differ."""
    span = span_of(record)
    return TimeSpan(span.start_s, max(span.end_s, *(bar.end_s for bar in bars)))


class _Look(NamedTuple):
    color: str
    pattern: str = ""


_LOOKS = [_Look(color) for color in PALETTE] + [_Look(color, "/") for color in PALETTE]
_GREY = _Look(NEUTRAL)  # for `several` and `others`


def _looks(bars: Sequence[Bar]) -> dict[str, _Look]:
    """Return the look of each kind, in order of first appearance.

    Kinds with most busy time get plain colours, the others patterns.
    """
    busy_s: defaultdict[str, float] = defaultdict(float)
    for bar in sorted(bars, key=lambda bar: bar.start_s):
        busy_s[bar.kind] += bar.busy_s
    named = [kind for kind in busy_s if kind not in (SEVERAL, OTHERS)]
    longest_first = sorted(named, key=lambda kind: -busy_s[kind])
    looks = dict(zip(longest_first, _LOOKS, strict=False))
    return {kind: looks.get(kind, _GREY) for kind in busy_s}


def _add(figure: Figure, kind: str, bars: Sequence[Bar], look: _Look, span: TimeSpan) -> None:
    narrowest_s = NARROWEST * span.seconds
    figure.add_bar(
        name=label(kind),
        y=[bar.row for bar in bars],
        base=[bar.start_s - span.start_s for bar in bars],
        x=[max(bar.end_s - bar.start_s, narrowest_s) for bar in bars],
        orientation="h",
        marker={
            "color": look.color,
            "line": {"width": 0},
            "pattern": {"shape": look.pattern, "solidity": 0.3},
        },
        customdata=[_hover(bar, span) for bar in bars],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _hover(bar: Bar, span: TimeSpan) -> str:
    lines = [
        f"<b>{label(bar.name, max_characters=80)}</b>",
        bar.row,
        f"at {format_seconds(bar.start_s - span.start_s)}, busy for {format_seconds(bar.busy_s)}",
    ]
    if bar.num_pieces > 1:
        lines.append(f"{format_count(bar.num_pieces)} together")
    if bar.output_bytes is not None:
        lines.append(f"output {format_bytes(bar.output_bytes)}")
    return "<br>".join(lines)


def _add_losses(
    figure: Figure, timeline: TimelineBars, rows: Mapping[str, str], span: TimeSpan
) -> None:
    losses = [(time_s, loss) for time_s, loss in timeline.losses if loss.worker in rows]
    if losses:
        figure.add_scatter(
            name="worker lost",
            mode="markers",
            x=[time_s - span.start_s for time_s, _ in losses],
            y=[rows[loss.worker] for _, loss in losses],
            marker={"symbol": "x", "size": 11, "color": ALARM},
            customdata=[label(loss.reason, max_characters=80) for _, loss in losses],
            hovertemplate="<b>lost</b> %{y}<br>%{customdata}<extra></extra>",
        )


def _notes(num_bars: int, num_drawn: int, num_rows: int, num_shown: int) -> str:
    notes = note("Drag to zoom into a period; double-click to zoom out.")
    if num_drawn < num_bars:
        notes += note(
            f"{format_count(num_bars)} bars, drawn as {format_count(num_drawn)}: "
            "neighbours too short to see are merged."
        )
    if num_shown < num_rows:
        notes += note(f"The first {num_shown} of {num_rows} rows.")
    return notes
