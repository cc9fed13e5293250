"""Tables of predicted costs, and of predicted beside measured costs."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from talka.cli.tables import print_table, print_text
from talka.jobs.base import total_seconds
from talka.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from talka.events import Comparison, Predicted
    from talka.report import ComparisonRow


def print_predicted(predicted: "Sequence[Predicted]") -> None:
    """Print one row per predicted cost and the total time."""
    rows = [
        {
            "cost": row.cost_id,
            "time": _cell(row.seconds, format_seconds),
            "sent": _cell(row.sent_bytes, format_bytes),
            "reason": row.reason,
        }
        for row in predicted
    ]
    print_table(rows, title="Predicted cost", right=("time", "sent"), prose=("reason",))
    unknown = [row.cost_id for row in predicted if row.seconds is None]
    without = f", without {', '.join(unknown)}" if unknown else ""
    print_text(f"total: about {format_seconds(total_seconds(predicted))}{without}")


def predicted_as_json(predicted: "Sequence[Predicted]") -> dict[str, Any]:
    return {
        "predicted": [asdict(row) for row in predicted],
        "total_s": total_seconds(predicted),
    }


def print_comparisons(comparisons: "Sequence[Comparison]") -> None:
    """Print predicted beside measured costs; columns without any value are left out."""
    from talka.report import comparison_rows

    rows = [_cells(row) for row in comparison_rows(comparisons)]
    columns = [name for name in (rows[0] if rows else ()) if any(row[name] for row in rows)]
    if not columns:
        print("This run has no predicted or measured costs.")
        return
    numbers = [name for name in columns if name not in ("cost", "reason")]
    shown = [{name: row[name] for name in columns} for row in rows]
    print_table(shown, title="Predicted and measured cost", right=numbers, prose=("reason",))


def _cells(row: "ComparisonRow") -> dict[str, str]:
    from talka.report.comparison import format_ratio

    return {
        "cost": row.cost_id,
        "predicted": _cell(row.predicted_seconds, format_seconds),
        "measured": _cell(row.measured_seconds, format_seconds),
        "ratio": format_ratio(row.seconds_ratio),
        "predicted sent": _cell(row.predicted_bytes, format_bytes),
        "measured sent": _cell(row.measured_bytes, format_bytes),
        "sent ratio": format_ratio(row.bytes_ratio),
        "reason": row.reason,
    }


def _cell(value: float | None, as_text: Callable[[float], str]) -> str:
    return "" if value is None else as_text(value)
