"""Supersteps of a graph program: active vertices, messages, bytes, seconds and direction."""

from collections.abc import Callable, Sequence
from typing import Final

from talka.events import RunRecord
from talka.report.base import PageSection, ReportSection
from talka.report.markup import escaped, note
from talka.report.plotting.plots import ALARM, NEUTRAL, PALETTE, step_plot
from talka.report.superstep_series import Superstep, SuperstepSeries, thinned_supersteps
from talka.units import format_bytes, format_count, format_seconds

_WAYS: Final = {
    "push": ("push: active vertices write to their neighbours", PALETTE[0]),
    "pull": ("pull: all vertices read from their neighbours", PALETTE[1]),
    "both": ("some partitions push, some pull", PALETTE[2]),
    "other": ("neither", NEUTRAL),
}


def supersteps_section(record: RunRecord) -> ReportSection | None:
    """Build the section of a graph program; None for a run without supersteps."""
    supersteps = record.fold(SuperstepSeries).supersteps
    if not supersteps:
        return None
    bars = thinned_supersteps(supersteps)
    body = f"<p>{escaped(_in_words(supersteps))}</p>"
    if len(bars) < len(supersteps):
        body += note(f"{len(supersteps):,} supersteps, drawn as {len(bars)} means of neighbours.")
    body += _plot("Active vertices", "frontier", bars, lambda bar: bar.num_active, format_count)
    body += _plot("Messages", "messages", bars, lambda bar: bar.num_messages, format_count)
    body += _plot("Bytes sent", "bytes", bars, lambda bar: bar.sent_bytes, format_bytes, unit="B")
    body += _plot("Seconds", "seconds", bars, lambda bar: bar.seconds, format_seconds, unit="s")
    return ReportSection("Supersteps", body)


SUPERSTEPS = PageSection(supersteps_section, (SuperstepSeries,), pillar="graph")


def _in_words(supersteps: Sequence[Superstep]) -> str:
    seconds = sum(step.seconds for step in supersteps)
    edges = sum(step.edges for step in supersteps)
    counts = {way: sum(step.way == way for step in supersteps) for way in ("push", "pull", "both")}
    text = (
        f"{_counted(len(supersteps), 'superstep')} in {format_seconds(seconds)}: "
        f"{counts['push']} pushed, {counts['pull']} pulled, {counts['both']} did both. "
        f"{format_count(edges)} edges were traversed"
    )
    text += f", {format_count(edges / seconds)} per second. " if seconds else ". "
    most = max(supersteps, key=lambda step: step.sent_bytes)
    if most.sent_bytes:
        sent = format_bytes(sum(step.sent_bytes for step in supersteps))
        text += (
            f"Partitions sent each other {sent}, most of it in superstep {most.number:.0f} "
            f"({format_bytes(most.sent_bytes)})."
        )
    else:
        text += "Nothing was sent between partitions."
    if num_again := sum(step.num_again for step in supersteps):
        text += f" {_counted(num_again, 'task')} ran again after a loss."
    return text


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def _plot(
    title: str,
    name: str,
    bars: Sequence[Superstep],
    value_of: Callable[[Superstep], float],
    shown_as: Callable[[float], str],
    *,
    unit: str = "",
) -> str:
    """Plot a value per superstep, coloured by direction; return "" if all values are zero."""
    most = max(value_of(bar) for bar in bars)
    if not most:
        return ""
    figure = step_plot(unit=unit, most=most)
    figure.update_layout(barmode="overlay", bargap=0.1)
    figure.update_xaxes(title={"text": "superstep"})
    for way, (description, color) in _WAYS.items():
        bars_of_way = [bar for bar in bars if bar.way == way]
        if bars_of_way:
            values = [value_of(bar) for bar in bars_of_way]
            figure.add_bar(
                name=description,
                x=[bar.number for bar in bars_of_way],
                y=values,
                marker={"color": color},
                customdata=[shown_as(value) for value in values],
                hovertemplate="%{customdata}",
            )
    with_reruns = [bar for bar in bars if bar.num_again]
    if with_reruns:
        figure.add_scatter(
            name="tasks ran again",
            x=[bar.number for bar in with_reruns],
            y=[value_of(bar) for bar in with_reruns],
            mode="markers",
            marker={"color": ALARM, "symbol": "x", "size": 9},
            customdata=[_counted(bar.num_again, "task") for bar in with_reruns],
            hovertemplate="%{customdata}",
        )
    return f"<h3>{title}</h3>{figure.as_html(f'superstep-{name}')}"
