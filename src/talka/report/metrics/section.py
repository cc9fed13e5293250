"""The section of metrics: last values, and a plot per metric with a curve per rank."""

from collections.abc import Mapping
from typing import Final

from talka.events import RunRecord
from talka.report.base import PageSection, ReportSection, natural_order
from talka.report.markup import Column, escaped, note, table
from talka.report.metrics.curves import Curve, MetricCurves, axis_of, thinned_points
from talka.report.plotting.plots import PALETTE, label, step_plot

MAX_METRICS: Final = 12
"""Metrics that are drawn, those with the most values first; the table has up to 100."""
_MAX_ROWS: Final = 100
_LOOKS: Final = [(color, dash) for dash in ("solid", "dot") for color in PALETTE]
_COLUMNS: Final = (
    Column("metric"),
    Column("last", "number"),
    Column("lowest", "number"),
    Column("highest", "number"),
    Column("last at", "number"),
    Column("ranks", "number"),
)


def metrics_section(record: RunRecord) -> ReportSection | None:
    """Build the section of metrics; None for a run whose script has logged none."""
    curves = record.fold(MetricCurves).curves
    if not curves:
        return None
    rows = [_row(name, curves[name]) for name in sorted(curves)[:_MAX_ROWS]]
    most_first = sorted(curves, key=lambda name: (-_num_values(curves[name]), name))
    drawn = sorted(most_first[:MAX_METRICS])
    body = note("Values of the first rank; one plot for each metric, one curve for each rank.")
    body += table(_COLUMNS, rows)
    body += "".join(_plot(number, name, curves[name]) for number, name in enumerate(drawn))
    if len(drawn) < len(curves):
        body += note(f"{len(drawn)} of {len(curves)} metrics are drawn.")
    return ReportSection("Metrics", body)


METRICS = PageSection(metrics_section, (MetricCurves,), pillar="train")


def _num_values(by_rank: Mapping[str, Curve]) -> int:
    return max(curve.num_values for curve in by_rank.values())


def _row(name: str, by_rank: Mapping[str, Curve]) -> list[str]:
    first = by_rank[min(by_rank, key=natural_order)]
    finite = [point.value for point in first.points if point.value is not None]
    last, event = first.points[-1], first.last
    place = "" if event is None else _place(event.step, event.epoch)
    return [
        f"<code>{escaped(name)}</code>",
        _number(last.value),
        _number(min(finite, default=None)),
        _number(max(finite, default=None)),
        place,
        str(len(by_rank)),
    ]


def _place(step: int | None, epoch: float | None) -> str:
    if step is not None:
        return f"step {step:,}"
    return "" if epoch is None else f"epoch {epoch:g}"


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.6g}"


def _plot(number: int, name: str, by_rank: Mapping[str, Curve]) -> str:
    figure = step_plot(unit="", most=0)
    axis = axis_of(list(by_rank.values()))
    figure.update_xaxes(title={"text": axis, "font": {"size": 13}})
    figure.update_yaxes(tickformat="~g", rangemode="normal")
    ranks = sorted(by_rank, key=natural_order)
    for rank, (color, dash) in zip(ranks, _LOOKS, strict=False):
        points = thinned_points(by_rank[rank])
        figure.add_scatter(
            name=label(rank),
            x=[point.place for point in points],
            y=[point.value for point in points],
            mode="lines" if len(points) > 2 else "lines+markers",
            line={"color": color, "width": 2, "dash": dash},
            customdata=[_number(point.value) for point in points],
            hovertemplate="%{customdata}",
        )
    text = _remarks(by_rank, ranks)
    return f"<h3>{escaped(name)}</h3>{text}{figure.as_html(f'metric-{number}')}"


def _remarks(by_rank: Mapping[str, Curve], ranks: list[str]) -> str:
    remarks = []
    if len(ranks) > len(_LOOKS):
        remarks.append(f"The first {len(_LOOKS)} of {len(ranks)} ranks.")
    broken = [
        f"{rank} at {point.place:,.6g}"
        for rank in ranks
        if (point := next((p for p in by_rank[rank].points if p.value is None), None)) is not None
    ]
    if broken:
        more = f" and {len(broken) - 3} more ranks" if len(broken) > 3 else ""
        remarks.append(f"First value that is not finite: {', '.join(broken[:3])}{more}.")
    return note(" ".join(remarks)) if remarks else ""
