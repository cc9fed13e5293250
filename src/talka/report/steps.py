"""Training steps: seconds by kind of work, bytes sent, and norms of the residuals."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from talka.events import RunRecord
from talka.report.base import PageSection, ReportSection, natural_order
from talka.report.markup import escaped, note
from talka.report.plotting.figure import Figure
from talka.report.plotting.plots import PALETTE, label, step_plot
from talka.report.step_series import (
    KINDS,
    NormSeen,
    StepPoint,
    StepSeries,
    thinned_norms,
    thinned_steps,
)
from talka.units import format_bytes, format_seconds

_LOOKS = [(color, dash) for dash in ("solid", "dot") for color in PALETTE]
"""Color and dash of each worker's curve. More workers than these are not drawn."""


def steps_section(record: RunRecord) -> ReportSection | None:
    """Build the section of a training run; None for a run without steps."""
    series = record.fold(StepSeries)
    steps = series.steps()
    if not steps:
        return None
    timed = [step for step in steps if not step.is_first] or steps
    body = f"<p>{escaped(_in_words(steps, timed, series.num_workers))}</p>"
    body += _seconds_plot(timed) + _bytes_plot(steps) + _norms_plot(series.norms())
    return ReportSection("Training steps", body)


STEPS = PageSection(steps_section, (StepSeries,), pillar="train")


def _in_words(steps: Sequence[StepPoint], timed: Sequence[StepPoint], num_workers: int) -> str:
    sent_bytes = sum(step.sent_bytes for step in steps)
    means = {kind: fmean(step.seconds[kind] for step in timed) for kind in KINDS}
    whole_s = sum(means.values())
    shares = ", ".join(
        f"{kind} {format_seconds(seconds)} ({seconds / whole_s if whole_s else 0:.0%})"
        for kind, seconds in means.items()
    )
    return (
        f"{num_workers} {_plural('worker', num_workers)} took {len(steps):,} "
        f"{_plural('step', len(steps))} and sent {format_bytes(sent_bytes)} in all, "
        f"{format_bytes(sent_bytes / len(steps))} per step. Mean seconds of a step: {shares}."
    )


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


class _Curve(NamedTuple):
    name: str
    numbers: list[float]
    values: list[float]
    color: str
    dash: str = "solid"
    stackgroup: str | None = None


def _seconds_plot(steps: Sequence[StepPoint]) -> str:
    points = thinned_steps(steps)
    numbers = [point.number for point in points]
    curves = [
        _Curve(kind, numbers, [point.seconds[kind] for point in points], color, stackgroup="one")
        for color, kind in zip(PALETTE, KINDS, strict=False)
    ]
    most = max(sum(point.seconds.values()) for point in points)
    overlap = note(
        "Mean of all workers, without the first step, which includes the start. Buckets are encoded "
        "and exchanged during the backward pass, so a step can be shorter than the sum of its parts."
    )
    figure = _drawn(step_plot(unit="s", most=most), curves, format_seconds)
    return (
        f"<h3>Seconds of a step</h3>{overlap}{_thinning(steps, points)}"
        f"{figure.as_html('step-seconds')}"
    )


def _bytes_plot(steps: Sequence[StepPoint]) -> str:
    points = thinned_steps(steps)
    sent_bytes = [point.sent_bytes for point in points]
    if not any(sent_bytes):
        return ""
    curve = _Curve("sent", [point.number for point in points], sent_bytes, PALETTE[0])
    figure = _drawn(step_plot(unit="B", most=max(sent_bytes)), [curve], format_bytes)
    return (
        f"<h3>Bytes sent in a step, all workers</h3>{_thinning(steps, points)}"
        f"{figure.as_html('step-bytes')}"
    )


def _norms_plot(norms: Mapping[str, Sequence[NormSeen]]) -> str:
    if not norms:
        return ""
    workers = sorted(norms, key=natural_order)
    curves = []
    for worker, (color, dash) in zip(workers, _LOOKS, strict=False):
        points = thinned_norms(norms[worker])
        numbers, values = [point.number for point in points], [point.norm for point in points]
        curves.append(_Curve(worker, numbers, values, color, dash))
    text = "L2 norm of each worker's residuals: what compression has dropped and not yet sent."
    if len(curves) < len(workers):
        text += f" The first {len(curves)} of {len(workers)} workers."
    most = max(max(curve.values) for curve in curves)
    figure = _drawn(step_plot(unit="", most=most), curves, "{:.4g}".format)
    return f"<h3>Residual norm</h3>{note(text)}{figure.as_html('residual-norm')}"


def _drawn(figure: Figure, curves: Sequence[_Curve], shown_as: Callable[[float], str]) -> Figure:
    for curve in curves:
        figure.add_scatter(
            name=label(curve.name),
            x=curve.numbers,
            y=curve.values,
            mode="lines" if len(curve.values) > 2 else "lines+markers",
            line={"color": curve.color, "width": 1 if curve.stackgroup else 2, "dash": curve.dash},
            stackgroup=curve.stackgroup,
            customdata=[shown_as(value) for value in curve.values],
            hovertemplate="%{customdata}",
        )
    return figure


def _thinning(steps: Sequence[StepPoint], points: Sequence[StepPoint]) -> str:
    if len(points) == len(steps):
        return ""
    return note(f"{len(steps):,} steps, drawn as {len(points)} means of neighbours.")
