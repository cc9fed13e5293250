"""Write one HTML page about a run, and print what was predicted beside what was measured.

RUN is a run directory such as runs/2026-11-15T17-40-00-demo, also of a run that still goes on or
was killed. The page works without a network.
"""

import argparse
from pathlib import Path

HELP = "one HTML page about a run, with plots"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_dir", metavar="RUN", type=Path, help="the run directory")
    parser.add_argument(
        "--out", metavar="FILE", type=Path, help="where to put the page (default: RUN/report.html)"
    )
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="what to print (default: text)"
    )


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
    return 0
