"""Tables of plans, and of predicted beside measured costs."""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from talka.cli.tables import print_table, print_text
from talka.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from talka.events import Comparison
    from talka.plans import Part
    from talka.report import ComparisonRow


def print_plan(whole: "Part", *, hidden: re.Pattern[str] | None = None) -> None:
    """Print one row per part and the total time, except parts whose cost id matches `hidden`."""
    rows = [
        {
            "cost": part.cost_id,
            "time": _cell(part.seconds, format_seconds),
            "sent": _cell(part.sent_bytes, format_bytes),
            "reason": part.reason,
        }
        for part in whole.walk()
        if part is not whole and not (hidden and hidden.fullmatch(part.cost_id))
    ]
    print_table(rows, title="Predicted cost", right=("time", "sent"), prose=("reason",))
    unknown = whole.unknown()
    without = f", without {', '.join(unknown)}" if unknown else ""
    print_text(f"total: about {format_seconds(whole.known_seconds)}{without}")


def plan_as_json(whole: "Part") -> dict[str, Any]:
    """Return the tree of a plan and its total time, as plain values."""
    return {"plan": whole.as_plain(), "total_s": whole.known_seconds}


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
