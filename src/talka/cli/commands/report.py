"""Write an HTML report of a run and print predicted beside measured costs.

RUN is a run directory such as runs/2026-11-15T17-40-00-demo. The run may be in progress or may have
been killed. The page works offline.
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from talka.cli.options import add_format, add_out

if TYPE_CHECKING:
    from talka.events import RunRecord


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_dir", metavar="RUN", type=Path, help="the run directory")
    add_out(parser, "FILE", note=" (default: RUN/report.html)")
    add_format(parser)


def run(args: argparse.Namespace) -> int:
    from talka.cli.costs import print_comparisons
    from talka.cli.tables import print_json
    from talka.events import read_run
    from talka.report import comparison_rows, write_page

    record = read_run(args.run_dir)
    path = write_page(record, args.out)
    comparisons = record.comparisons()
    if args.format == "json":
        rows = [row._asdict() for row in comparison_rows(comparisons)]
        print_json({"path": str(path), "status": record.status, "comparisons": rows})
    else:
        print_comparisons(comparisons)
        print(f"{record.status}  {path}")
    return _warn_about(record)


def _warn_about(record: "RunRecord") -> int:
    """Warn on standard error about missing events; return 1 if event files are damaged."""
    from talka.events import Unknown

    if record.status == "killed":
        print("talka report: the run did not finish, and its process no longer exists",
              file=sys.stderr)  # fmt: skip
    if num_unknown := record.num_by_kind[Unknown]:
        print(f"talka report: {num_unknown} events are of kinds that this version does not know; "
              "the page lists them", file=sys.stderr)  # fmt: skip
    if not record.num_unreadable_lines:
        return 0
    print(f"talka report: {record.num_unreadable_lines} lines of event files could not be read, "
          f"{record.num_damaged_lines} of them are damaged", file=sys.stderr)  # fmt: skip
    return 1 if record.num_damaged_lines else 0
