"""A plot with two bars per cost id: predicted and measured."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from talka.report.markup import escaped, note
from talka.report.plotting.figure import Figure
from talka.report.plotting.plots import PALETTE, horizontal_bars, label, row_labels

MAX_PLOTTED_COSTS = 30


class Pair(NamedTuple):
    """Predicted and measured value of one cost id, in the same unit."""

    cost_id: str
    predicted: float | None
    measured: float | None

    @property
    def largest(self) -> float:
        """The larger of both values, counting None as 0."""
        return max(self.predicted or 0, self.measured or 0)


def pairs_plot(
    title: str,
    pairs: Sequence[Pair],
    *,
    shown_as: Callable[[float], str],
    axis: Callable[[Figure, float], None],
) -> str:
    """Plot the pairs with the largest values; return "" if every value is zero or unknown."""
    known = [pair for pair in pairs if pair.largest > 0]
    if not known:
        return ""
    threshold = sorted((pair.largest for pair in known), reverse=True)[:MAX_PLOTTED_COSTS][-1]
    plotted = [pair for pair in known if pair.largest >= threshold][:MAX_PLOTTED_COSTS]
    figure = horizontal_bars(
        num_rows=len(plotted), row_px=44 if len(plotted) <= 10 else 32, barmode="group"
    )
    figure.update_xaxes(fixedrange=True)
    _add(figure, "predicted", {pair.cost_id: pair.predicted for pair in plotted}, shown_as)
    _add(figure, "measured", {pair.cost_id: pair.measured for pair in plotted}, shown_as)
    axis(figure, max(pair.largest for pair in plotted))
    cut = ""
    if len(plotted) < len(known):
        cut = note(f"The {len(plotted)} largest of {len(known)} costs.")
    name = title.lower().replace(" ", "-")
    return f"<h3>{escaped(title)}</h3>{cut}{figure.as_html(name)}"


def _add(
    figure: Figure, side: str, values: dict[str, float | None], shown_as: Callable[[float], str]
) -> None:
    texts = ["" if value is None else shown_as(value) for value in values.values()]
    figure.add_bar(
        name=side,
        y=list(row_labels(values).values()),
        x=list(values.values()),
        orientation="h",
        marker={"color": PALETTE[0] if side == "predicted" else PALETTE[1]},
        text=texts,
        textposition="outside",
        textfont={"size": 12},
        constraintext="none",
        cliponaxis=False,
        customdata=[label(cost_id, max_characters=120) for cost_id in values],
        hovertemplate=f"%{{customdata}}<br>{side} %{{text}}<extra></extra>",
    )
