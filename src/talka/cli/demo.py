"""Count the words of the documentation that came with the installed Python packages.

No download, nothing to prepare: it shows how every job goes. First what it will cost, then the run
with its progress, then what it did cost beside the prediction, and a page to look at.
"""

import argparse
from dataclasses import asdict
from pathlib import Path

from talka.cli.engines import add_engine_argument, open_engine

HELP = "a small job on this machine: explain, run, report"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_engine_argument(parser)
    parser.add_argument("--explain", action="store_true", help="say what it would cost and stop")
    parser.add_argument(
        "--runs", type=Path, default=Path("runs"), metavar="DIR", help="default: %(default)s"
    )
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="default: %(default)s"
    )


def run(args: argparse.Namespace) -> int:
    from talka.cli.costs import print_comparisons, print_predicted
    from talka.cli.tables import print_json, print_table
    from talka.jobs.base import execute
    from talka.jobs.word_counts import WordCounts, summary
    from talka.report import write_report

    job = WordCounts(lambda events: open_engine(args.engine, events))
    predicted = job.explain()
    if args.format == "text":
        print_predicted(predicted)
    elif args.explain:
        print_json([asdict(one) for one in predicted])
    if args.explain:
        return 0
    finished = execute(job, predicted, root=args.runs)
    page = write_report(finished.dir)
    if args.format == "json":
        print_json({"result": finished.result, "run": str(finished.dir), "report": str(page)})
        return 0
    print_table(finished.result["most_frequent"], title="\nMost frequent words", right=("count",))
    print(f"{summary(finished.result)}\n")
    print_comparisons(finished.comparisons)
    print(f"\nopen {page}")
    return 0
