"""Score word vectors on analogy and similarity files.

Analogy files (four words per line, sections begin with `:`, such as questions-words.txt) give the
accuracy per section and in total. Similarity files (two words and a score per line, such as
wordsim353) give Spearman's rho. Intervals are 95% confidence intervals; coverage is the share of
questions whose words all have vectors.
"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from talka.cli.options import add_format

if TYPE_CHECKING:
    from talka.jobs.embeddings.evaluation import AnalogyReport, SimilarityReport
    from talka.jobs.embeddings.statistics import Interval


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dir", metavar="DIR", help="output folder of `talka embed`")
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        type=Path,
        help="analogy or similarity file; - is standard input",
    )
    add_format(parser)


def run(args: argparse.Namespace) -> int:
    from talka.cli.tables import print_json
    from talka.jobs.embeddings.evaluation import evaluate
    from talka.jobs.embeddings.vectors import Embeddings

    embeddings = Embeddings.load(args.dir)
    reports = [evaluate(embeddings, file) for file in args.files]
    if args.format == "json":
        print_json([asdict(report) for report in reports])
    else:
        print_reports(reports)
    return 0


def print_reports(reports: "Sequence[AnalogyReport | SimilarityReport]") -> None:
    """Print one table per question file."""
    from talka.cli.tables import print_table
    from talka.jobs.embeddings.evaluation import AnalogyReport

    for report in reports:
        if isinstance(report, AnalogyReport):
            rows = [_analogy_row(score) for score in (*report.sections, report.total)]
            print_table(rows, title=report.file, right=("accuracy", "asked", "coverage"))
        else:
            row = {
                "Spearman's rho": "" if report.rho is None else f"{report.rho:.3f}",
                "95% interval": _interval(report.interval),
                "asked": f"{report.num_asked} of {report.num_pairs}",
                "coverage": f"{report.coverage:.1%}",
            }
            print_table([row], title=report.file)


def _analogy_row(score: Any) -> dict[str, str]:
    return {
        "section": score.section,
        "accuracy": "" if score.accuracy is None else f"{score.accuracy:.1%}",
        "95% interval": _interval(score.interval),
        "asked": f"{score.num_asked} of {score.num_questions}",
        "coverage": f"{score.coverage:.1%}",
    }


def _interval(interval: "Interval | None") -> str:
    return "" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"
