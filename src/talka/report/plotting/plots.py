"""The common look of all plots: one palette, no background, no external script."""

import html
from collections import Counter
from collections.abc import Iterable

from talka.report.plotting.figure import Figure

# Distinguishable with any kind of colour blindness: Okabe and Ito's colours without black and
# yellow, which vanish on a dark or a light page, then Paul Tol's wine and olive.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999933", "#AA4466")
NEUTRAL = "#8a8f98"
ALARM = "#E5383B"


def label(text: str, *, max_characters: int = 40) -> str:
    """Shorten and escape text for an axis, a legend or a hover box: plotly interprets tags there.

    >>> label("<b>stage</b>")
    '&lt;b&gt;stage&lt;/b&gt;'
    """
    if len(text) > max_characters:
        text = f"{text[: max_characters - 1]}…"
    return html.escape(text, quote=False)


def row_labels(names: Iterable[str]) -> dict[str, str]:
    """Return a distinct label for each row: plotly draws rows with the same label as one row.

    >>> list(row_labels(["a" * 50, "a" * 51]).values())[1][-8:]
    'aaaa…  2'
    """
    labels: dict[str, str] = {}
    seen: Counter[str] = Counter()
    for name in names:
        text = label(name)
        seen[text] += 1
        labels[name] = text if seen[text] == 1 else f"{text}  {seen[text]}"
    return labels


def horizontal_bars(*, num_rows: int, row_px: int, barmode: str) -> Figure:
    """Return an empty plot with one row per worker or cost id, the first on top.

    Text and grid lines get their colours from the style sheet, which supports light and dark.
    """
    figure = _figure(90 + row_px * num_rows)
    figure.update_layout(barmode=barmode, bargap=0.3)
    figure.update_xaxes(gridcolor=NEUTRAL, zeroline=False, automargin=True, rangemode="tozero")
    figure.update_yaxes(
        type="category",  # otherwise plotly treats rows named 0, 1, 2 as numbers
        autorange="reversed",
        automargin=True,
        fixedrange=True,
        showgrid=False,
        ticks="",
        ticklabelstandoff=8,
    )
    return figure


def step_plot(*, unit: str, most: float) -> Figure:
    """Return an empty plot of a quantity over training steps."""
    figure = _figure(280)
    figure.update_layout(hovermode="x unified")
    figure.update_xaxes(
        title={"text": "step", "font": {"size": 13}}, showgrid=False, zeroline=False
    )
    figure.update_yaxes(
        gridcolor=NEUTRAL,
        zeroline=False,
        automargin=True,
        fixedrange=True,
        rangemode="tozero",
        ticks="",
        ticklabelstandoff=8,
        tickformat=",.0f" if unit == "s" and most >= 1000 else "~s",
        ticksuffix=unit,
    )
    return figure


def _figure(height_px: int) -> Figure:
    return Figure(
        {
            "height": height_px,
            "margin": {"l": 10, "r": 10, "t": 10, "b": 40},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"family": "system-ui, sans-serif", "size": 13},
            "legend": {
                "orientation": "h",
                "x": 0,
                "y": 1,
                "yanchor": "bottom",
                "traceorder": "normal",
            },
            "hoverlabel": {"align": "left", "bgcolor": "#2b313a", "bordercolor": "#2b313a"},
        }
    )


def seconds_axis(figure: Figure, longest_s: float, title: str = "") -> None:
    """Format ticks as 20 ms or 1.5 s, and from 1000 s as whole seconds instead of kiloseconds."""
    if longest_s < 1000:
        figure.update_xaxes(tickformat="~s", ticksuffix="s")
    else:
        figure.update_xaxes(tickformat=",.0f", ticksuffix=" s")
    figure.update_xaxes(title={"text": title, "font": {"size": 13}})


def bytes_axis(figure: Figure, most_bytes: float) -> None:
    """Format ticks as bytes with an SI prefix."""
    figure.update_xaxes(tickformat="~s", ticksuffix="B")
