"""Train word vectors (GloVe) on your own text, using all cores.

CORPUS is UTF-8 text: files (plain, .gz, .zst), folders, or - for standard input. The output folder
contains vectors.txt (in word2vec's text format with --header), vectors.arrow and result.json. It
appears when all files are complete; until then DIR.unfinished holds the progress that --resume
continues from.
"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from talka.cli.numbers import Number, count, number, size
from talka.cli.options import (
    SHOWN,
    TABLE,
    add_explain,
    add_format,
    add_out,
    add_resume_and_force,
    add_runs,
    add_threads,
)

if TYPE_CHECKING:
    from talka.jobs.base import Finished
    from talka.jobs.embeddings.config import EmbedConfig
    from talka.jobs.embeddings.evaluation import QuestionFile
    from talka.jobs.embeddings.plan import EmbedPlan

MIN_MEMORY_BYTES = 1_000_000
_WHOLE: dict[str, Any] = {"action": Number, "parse": count()}
_POSITIVE: dict[str, Any] = {"action": Number, "parse": number(above=0)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add, whole = parser.add_argument, _WHOLE
    add("corpus", metavar="CORPUS", nargs="+", help="text files, folders or -")
    add_out(parser, "DIR", note=", a folder", required=True)
    add("--tokenizer", default="words", metavar="NAME",
        help="words (letters and digits of any script, lower-cased), letters (a to z) or "
        f"whitespace {SHOWN}")  # fmt: skip
    add("--min-count", **whole, default="5", metavar="N", help=f"ignore rarer words {SHOWN}")
    add("--window", **whole, default="10", metavar="N",
        help=f"number of context words on either side of a word {SHOWN}")  # fmt: skip
    add("--across-lines", action="store_true", help="let windows extend across line ends")
    _add_training_arguments(parser)
    add("--header", action="store_true",
        help="start vectors.txt with the number of words and dimensions, "
        "like word2vec")  # fmt: skip
    add("--evaluate", metavar="FILE", nargs="+", type=Path, default=[],
        help="analogy or similarity files to score the vectors on; - is "
        "standard input")  # fmt: skip
    add_explain(parser)
    add_resume_and_force(parser)
    add_runs(parser)
    add_format(parser)


def _add_training_arguments(parser: argparse.ArgumentParser) -> None:
    add, whole, positive = parser.add_argument, _WHOLE, _POSITIVE
    add("--dim", **whole, default="100", metavar="N", help=f"length of a vector {SHOWN}")
    add("--epochs", **whole, default="15", metavar="N",
        help=f"number of passes over all pairs {SHOWN}")  # fmt: skip
    add("--learning-rate", **positive, default="0.05", metavar="X",
        help=f"learning rate of AdaGrad {SHOWN}")  # fmt: skip
    add("--x-max", **positive, default="100", metavar="X",
        help=f"co-occurrence counts from here on have weight 1 {SHOWN}")  # fmt: skip
    add("--alpha", action=Number, parse=number(at_least=0), default="0.75", metavar="X",
        help=f"smaller counts have weight (count / x-max) ^ alpha {SHOWN}")  # fmt: skip
    add("--seed", action=Number, parse=count(at_least=0, at_most=2**63 - 1), default="0",
        metavar="N",
        help=f"random seed; with one thread, equal seeds give equal vectors {SHOWN}")  # fmt: skip
    add_threads(parser)
    add("--memory", action=Number, parse=size(at_least=MIN_MEMORY_BYTES), metavar="SIZE",
        help="memory budget, at least 1MB; arrays beyond it are moved to disk (default: 2GB, or "
        "half of the available memory if that is less)")  # fmt: skip
    add("--parallel", choices=("threads", "dimensions"), default="threads",
        help="threads share one model; with dimensions, each of --workers processes holds a slice "
        f"of all vectors and only dot products are exchanged {SHOWN}")  # fmt: skip
    add("--workers", **whole, default="2", metavar="P",
        help=f"number of processes with --parallel dimensions {SHOWN}")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    from talka.cli.costs import plan_as_json, print_plan
    from talka.cli.options import hint_to_resume
    from talka.cli.tables import print_json
    from talka.events import Stream, progress_in_terminal
    from talka.jobs.base import execute, with_start
    from talka.jobs.embeddings.evaluation import checked_questions
    from talka.jobs.embeddings.plan import EmbedPlan

    _check_reads_standard_input_once(args)
    # Errors in question files are reported now, not after an hour of training.
    questions = [checked_questions(file) for file in args.evaluate]
    plan = EmbedPlan(
        config_of(args), args.out, header=args.header, resume=args.resume, force=args.force
    )
    events = Stream()
    with progress_in_terminal(events), events.phase("embed/sample"):
        predicted = with_start(plan)
    if args.format == TABLE:
        print_plan(predicted)
        print_expected(plan)
    elif args.explain:
        expected = None if plan.expected is None else plan.expected._asdict()
        print_json({"expected": expected, **plan_as_json(predicted)})
    if args.explain:
        return 0
    with hint_to_resume(args, lambda: plan.can_be_resumed):
        finished = execute(plan, predicted, root=args.runs)
    reports = _evaluate(args.out, questions)
    if args.format == "json":
        scores = {"evaluation": [asdict(report) for report in reports]} if reports else {}
        print_json({**finished.result, **scores, "out": str(args.out), "run": str(finished.dir)})
    else:
        _print_finished(args.out, finished, reports)
    return 0


def config_of(args: argparse.Namespace) -> "EmbedConfig":
    """Return the checked configuration for the options of the command line."""
    from talka.data.text import PairOptions
    from talka.data.text.tokens import TOKENIZERS
    from talka.errors import InvalidValueError, UnknownNameError
    from talka.jobs.embeddings.config import EmbedConfig, TextConfig
    from talka.train.models.glove import GloVeConfig

    if args.tokenizer not in TOKENIZERS:
        raise UnknownNameError("tokenizer", args.tokenizer, tuple(TOKENIZERS))
    optional = {"threads": args.threads, "memory_bytes": args.memory}
    limits = {name: value for name, value in optional.items() if value is not None}
    try:
        text = TextConfig(
            corpus=tuple(args.corpus),
            tokenizer=args.tokenizer,
            min_count=args.min_count,
            pairs=PairOptions(window=args.window, across_lines=args.across_lines, seed=args.seed),
        )
        return EmbedConfig(
            text=text,
            dim=args.dim,
            epochs=args.epochs,
            glove=GloVeConfig(learning_rate=args.learning_rate, x_max=args.x_max, alpha=args.alpha),
            parallel=args.parallel,
            workers=args.workers,
            **limits,
        )
    except InvalidValueError as error:  # report the name of the command line
        option = f"--{error.name.lstrip('-').replace('_', '-')}"
        raise InvalidValueError(option, error.given, error.allowed) from None


def print_expected(plan: "EmbedPlan") -> None:
    """Print the expected number of words and pairs and the memory needed, in one line."""
    from talka.units import format_bytes, format_count

    expected = plan.expected
    if expected is not None:
        words, pairs = format_count(expected.num_words), format_count(expected.num_pairs)
        memory = format_bytes(expected.memory_bytes)
        print(f"expected: {words} words, {pairs} pairs, {memory} of memory\n")


def _check_reads_standard_input_once(args: argparse.Namespace) -> None:
    from talka.errors import InputError
    from talka.inputs import STDIN, name_of

    if [*args.corpus, *map(str, args.evaluate)].count(STDIN) > 1:
        raise InputError(name_of(STDIN), "is given more than once", "Give files for the others.")


def _evaluate(out: Path, questions: "Sequence[QuestionFile]") -> list[Any]:
    from talka.jobs.embeddings import Embeddings, evaluate

    if not questions:
        return []
    embeddings = Embeddings.load(out)
    return [evaluate(embeddings, file) for file in questions]


def _print_finished(out: Path, finished: "Finished", reports: list[Any]) -> None:
    from talka.cli.commands.evaluate import print_reports
    from talka.cli.costs import print_comparisons
    from talka.cli.tables import print_text
    from talka.units import format_bytes, format_count

    result = finished.result
    print_comparisons(finished.comparisons)
    losses = "  ".join(f"{loss:.5f}" for loss in result["loss"])
    print()
    print_text(f"loss per epoch  {losses}")
    if result["num_replaced"]:
        num_replaced = result["num_replaced"]
        print_text(f"{num_replaced} invalid UTF-8 sequences of the text were replaced by U+FFFD")
    print_reports(reports)
    words, pairs = format_count(result["num_words"]), format_count(result["num_pairs"])
    memory = format_bytes(result["peak_memory_bytes"])
    print_text(
        f"{words} words, {pairs} pairs, {memory} of memory at the peak, vectors in {out}, "
        f"run directory {finished.dir}"
    )
