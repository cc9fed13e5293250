"""Supersteps of a graph program: who spoke, what travelled, what it took, and which way it went."""

from collections.abc import Callable, Sequence
from typing import Final

from talka.events import RunRecord
from talka.report.base import Section
from talka.report.markup import escaped, note
from talka.report.plots import ALARM, NEUTRAL, PALETTE, as_html, step_plot
from talka.report.superstep_series import Superstep, supersteps_of, thinned
from talka.units import format_bytes, format_count, format_seconds

_WAYS: Final = {
    "push": ("push: those who speak write to their neighbours", PALETTE[0]),
    "pull": ("pull: all read from their neighbours", PALETTE[1]),
    "both": ("some push, some pull", PALETTE[2]),
    "other": ("neither", NEUTRAL),
}


def supersteps_section(record: RunRecord) -> Section | None:
    supersteps = supersteps_of(record)
    if not supersteps:
        return None
    bars = thinned(supersteps)
    body = f"<p>{escaped(_in_words(supersteps))}</p>"
    if len(bars) < len(supersteps):
        body += note(f"{len(supersteps):,} supersteps, drawn as {len(bars)} means of neighbours.")
    body += _plot("Active vertices", "frontier", bars, lambda one: one.num_active, format_count)
    body += _plot("Messages", "messages", bars, lambda one: one.num_messages, format_count)
    body += _plot("Bytes sent", "bytes", bars, lambda one: one.sent_bytes, format_bytes, unit="B")
    body += _plot("Seconds", "seconds", bars, lambda one: one.seconds, format_seconds, unit="s")
    return Section("Supersteps", body)


def _in_words(supersteps: Sequence[Superstep]) -> str:
    seconds = sum(one.seconds for one in supersteps)
    edges = sum(one.edges for one in supersteps)
    counts = {way: sum(one.way == way for one in supersteps) for way in ("push", "pull", "both")}
    text = (
        f"{_counted(len(supersteps), 'superstep')} in {format_seconds(seconds)}: "
        f"{counts['push']} pushed, {counts['pull']} pulled, {counts['both']} went both ways. "
        f"{format_count(edges)} edges were walked along"
    )
    text += f", {format_count(edges / seconds)} a second. " if seconds else ". "
    most = max(supersteps, key=lambda one: one.sent_bytes)
    if most.sent_bytes:
        sent = format_bytes(sum(one.sent_bytes for one in supersteps))
        text += (
            f"Partitions sent each other {sent}, most of it in superstep {most.number:.0f} "
            f"({format_bytes(most.sent_bytes)})."
        )
    else:
        text += "Nothing travelled between partitions."
    if num_again := sum(one.num_again for one in supersteps):
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
    """Bars in the colour of their way; absent where all are zero."""
    most = max(value_of(one) for one in bars)
    if not most:
        return ""
    figure = step_plot(unit=unit, most=most)
    figure.update_layout(barmode="overlay", bargap=0.1)
    figure.update_xaxes(title={"text": "superstep"})
    for way, (words, color) in _WAYS.items():
        those = [one for one in bars if one.way == way]
        if those:
            values = [value_of(one) for one in those]
            figure.add_bar(
                name=words,
                x=[one.number for one in those],
                y=values,
                marker={"color": color},
                customdata=[shown_as(value) for value in values],
                hovertemplate="%{customdata}",
            )
    again = [one for one in bars if one.num_again]
    if again:
        figure.add_scatter(
            name="tasks ran again",
            x=[one.number for one in again],
            y=[value_of(one) for one in again],
            mode="markers",
            marker={"color": ALARM, "symbol": "x", "size": 9},
            customdata=[_counted(one.num_again, "task") for one in again],
            hovertemplate="%{customdata}",
        )
    return f"<h3>{title}</h3>{as_html(figure, f'superstep-{name}')}"
