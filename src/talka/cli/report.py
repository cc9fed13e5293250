"""Write one HTML page about a run, and print what was predicted beside what was measured.

RUN is a run directory such as runs/2026-11-15T17-40-00-demo, also of a run that still goes on or
was killed. The page works without a network.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from talka.report import ComparisonRow

HELP = "one HTML page about a run, with plots"
_NAMES = (
    "part",
    "predicted",
    "measured",
    "ratio",
    "predicted sent",
    "measured sent",
    "sent ratio",
    "reason",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_dir", metavar="RUN", type=Path, help="the run directory")
    parser.add_argument(
        "--out", metavar="FILE", type=Path, help="where to put the page (default: RUN/report.html)"
    )
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="what to print (default: text)"
    )


def run(args: argparse.Namespace) -> int:
    from talka.cli.tables import print_json
    from talka.events import read_run
    from talka.report import comparison_rows, write_page

    record = read_run(args.run_dir)
    path = write_page(record, args.out)
    rows = comparison_rows(record.comparisons())
    if args.format == "json":
        comparisons = [row._asdict() for row in rows]
        print_json({"path": str(path), "status": record.status, "comparisons": comparisons})
    else:
        _print_text(path, record.status, rows)
    return 0


def _print_text(path: Path, status: str, rows: "list[ComparisonRow]") -> None:
    from talka.cli.tables import print_table

    cells = [_cells(row) for row in rows]
    said = [name for name in _NAMES if any(row[name] for row in cells)]
    if said:
        numbers = [name for name in said if name not in ("part", "reason")]
        print_table([{name: row[name] for name in said} for row in cells], right=numbers)
    else:
        print("Nothing was predicted or measured in this run.")
    print(f"{status}  {path}")


def _cells(row: "ComparisonRow") -> dict[str, str]:
    from talka.report.comparison import format_ratio
    from talka.units import format_bytes, format_seconds

    def shown(value: float | None, as_text: Callable[[float], str]) -> str:
        return "" if value is None else as_text(value)

    values = (
        row.part,
        shown(row.predicted_seconds, format_seconds),
        shown(row.measured_seconds, format_seconds),
        format_ratio(row.seconds_ratio),
        shown(row.predicted_bytes, format_bytes),
        shown(row.measured_bytes, format_bytes),
        format_ratio(row.bytes_ratio),
        row.reason,
    )
    return dict(zip(_NAMES, values, strict=True))
