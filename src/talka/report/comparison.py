"""Predicted and measured costs side by side, by cost id."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from talka.events import Comparison, RunRecord
from talka.events.costs import Costs
from talka.report.base import PageSection, ReportSection
from talka.report.markup import MAX_TABLE_ROWS, Column, escaped, note, table
from talka.report.plotting.comparison_plot import Pair, pairs_plot
from talka.report.plotting.plots import bytes_axis, seconds_axis
from talka.units import format_bytes, format_seconds

FAR_OFF = 2.0  # a prediction that is wrong by this factor stands out in the table


class ComparisonRow(NamedTuple):
    """Predicted and measured cost of one cost id; None for what was not predicted or measured."""

    cost_id: str
    predicted_seconds: float | None
    measured_seconds: float | None
    seconds_ratio: float | None
    """Measured over predicted seconds: 2.0 means it took twice as long as predicted."""
    predicted_bytes: float | None
    measured_bytes: float | None
    bytes_ratio: float | None
    reason: str
    predicted_memory: float | None = None
    """Predicted peak memory of one process, in bytes."""


def comparison_rows(comparisons: Sequence[Comparison]) -> list[ComparisonRow]:
    """Turn comparisons into rows of plain values, with ratios."""
    return [_row(comparison) for comparison in comparisons]


def comparison_section(record: RunRecord) -> ReportSection:
    """Build the table and the plots of predicted and measured costs."""
    title = "Predicted beside measured"
    rows = comparison_rows(record.comparisons())
    if not rows:
        return ReportSection(title, note("Nothing was predicted or measured in this run."))
    return ReportSection(title, _table(rows) + _seconds_plot(rows) + _bytes_plot(rows))


COMPARISON = PageSection(comparison_section, (Costs,))


def format_ratio(ratio: float | None) -> str:
    """Format a measured value as a multiple of its prediction.

    >>> format_ratio(1.0), format_ratio(250.0), format_ratio(0.00412), format_ratio(None)
    ('1.00x', '250x', '0.0041x', '')
    """
    if ratio is None:
        return ""
    if ratio >= 100:
        return f"{ratio:.0f}x"
    return f"{ratio:.2f}x" if ratio >= 0.1 else f"{ratio:.2g}x"


def _row(comparison: Comparison) -> ComparisonRow:
    cost_id, predicted, measured = comparison
    predicted_s = predicted.seconds if predicted else None
    measured_s = measured.seconds if measured else None
    predicted_bytes = predicted.sent_bytes if predicted else None
    measured_bytes = measured.sent_bytes if measured else None
    return ComparisonRow(
        cost_id=cost_id,
        predicted_seconds=predicted_s,
        measured_seconds=measured_s,
        seconds_ratio=_ratio(predicted_s, measured_s),
        predicted_bytes=predicted_bytes,
        measured_bytes=measured_bytes,
        bytes_ratio=_ratio(predicted_bytes, measured_bytes),
        reason=predicted.reason if predicted else "",
        predicted_memory=predicted.memory_bytes if predicted else None,
    )


def _ratio(predicted: float | None, measured: float | None) -> float | None:
    if not predicted or measured is None:
        return None
    ratio = measured / predicted
    return ratio if math.isfinite(ratio) else None


def _table(rows: Sequence[ComparisonRow]) -> str:
    """Return the table as HTML, without columns that would be empty in every row."""
    columns = [Column("cost")]
    columns += [Column("predicted time", "number"), Column("measured", "number")]
    columns += [Column("ratio", "number")]
    if _has_bytes(rows):
        columns += [Column("predicted bytes", "number"), Column("measured", "number")]
        columns += [Column("ratio", "number")]
    if with_memory := any(row.predicted_memory for row in rows):
        columns += [Column("predicted memory", "number")]
    if any(row.reason for row in rows):
        columns += [Column("reason of the prediction", "long")]
    shown = [
        _cells(row, with_bytes=_has_bytes(rows), with_memory=with_memory)
        for row in rows[:MAX_TABLE_ROWS]
    ]
    num_left = len(rows) - MAX_TABLE_ROWS
    rest = note(f"{num_left} more costs: talka report --format json") if num_left > 0 else ""
    return table(columns, [cells[: len(columns)] for cells in shown]) + rest


def _cells(row: ComparisonRow, *, with_bytes: bool, with_memory: bool) -> list[str]:
    cells = [
        f"<code>{escaped(row.cost_id)}</code>",
        "" if row.predicted_seconds is None else format_seconds(row.predicted_seconds),
        "" if row.measured_seconds is None else format_seconds(row.measured_seconds),
        _ratio_cell(row.seconds_ratio),
    ]
    if with_bytes:
        cells += [
            "" if row.predicted_bytes is None else format_bytes(row.predicted_bytes),
            "" if row.measured_bytes is None else format_bytes(row.measured_bytes),
            _ratio_cell(row.bytes_ratio),
        ]
    if with_memory:
        cells.append("" if row.predicted_memory is None else format_bytes(row.predicted_memory))
    return [*cells, escaped(row.reason)]


def _ratio_cell(ratio: float | None) -> str:
    text = format_ratio(ratio)
    if ratio is None or 1 / FAR_OFF < ratio < FAR_OFF:
        return text
    return f'<strong class="far-off">{text}</strong>'


def _has_bytes(rows: Sequence[ComparisonRow]) -> bool:
    return any(row.predicted_bytes or row.measured_bytes for row in rows)


def _seconds_plot(rows: Sequence[ComparisonRow]) -> str:
    pairs = [Pair(row.cost_id, row.predicted_seconds, row.measured_seconds) for row in rows]
    return pairs_plot("Seconds", pairs, shown_as=format_seconds, axis=seconds_axis)


def _bytes_plot(rows: Sequence[ComparisonRow]) -> str:
    pairs = [Pair(row.cost_id, row.predicted_bytes, row.measured_bytes) for row in rows]
    return pairs_plot("Bytes sent", pairs, shown_as=format_bytes, axis=bytes_axis)
