"""Train word vectors on the documentation of the installed Python packages.

Needs no download and takes about a minute. It shows the course of every job: the predicted cost,
the run with its progress, the measured beside the predicted cost, and an HTML report.
"""

import argparse

from talka.cli.numbers import Number, count
from talka.cli.options import SHOWN, TABLE, add_explain, add_format, add_runs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--epochs", action=Number, parse=count(), metavar="N", default="60",
                        help=f"number of passes over all pairs {SHOWN}")  # fmt: skip
    add_explain(parser)
    add_runs(parser)
    add_format(parser)


def run(args: argparse.Namespace) -> int:
    from talka.cli.costs import plan_as_json, print_comparisons, print_plan
    from talka.cli.tables import print_json, print_table
    from talka.events import Stream, progress_in_terminal
    from talka.jobs.base import execute, with_start
    from talka.jobs.demo import DemoPlan
    from talka.report import write_report
    from talka.units import format_count

    plan = DemoPlan(epochs=args.epochs)
    events = Stream()
    with progress_in_terminal(events), events.phase("demo/sample"):
        predicted = with_start(plan)
    if args.format == TABLE:
        print_plan(predicted)
    elif args.explain:
        print_json(plan_as_json(predicted))
    if args.explain:
        return 0
    finished = execute(plan, predicted, root=args.runs)
    result = finished.result
    page = write_report(finished.dir)
    if args.format == "json":
        print_json({**result, "run": str(finished.dir), "report": str(page)})
        return 0
    rows = [
        {"word": word, "nearest neighbours": ", ".join(near)}
        for word, near in result["neighbours"].items()
    ]
    words, pairs = format_count(result["num_words"]), format_count(result["num_pairs"])
    print_table(rows, title=f"\n{words} words, {pairs} pairs", prose=("nearest neighbours",))
    print()
    print_comparisons(finished.comparisons)
    print(f"\nmore neighbours  talka similar {result['vectors']} WORD\nreport           {page}")
    return 0
