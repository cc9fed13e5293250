"""Answers about every vertex of a graph: bfs, sssp, pagerank, components, strong-components,
communities, clustering, triangles, cores; degrees for the whole graph.

EDGES is a file of edges: text (source target [weight]), .csv, .tsv, .parquet, .arrow, MatrixMarket
(.mtx), METIS (.metis, .graph), LDBC's .e beside .v, neighbour lists (.adj), also .gz and .zst; - is
standard input. Without --out the answer is shown in short, or all of it with --format json or csv.
FILE appears whole at the end; until then FILE.unfinished holds checkpoints for --resume.
"""

import argparse
import contextlib
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from talka.cli.numbers import Number, count, number

if TYPE_CHECKING:
    from talka.jobs.graph import GraphConfig, GraphJob

HELP = "pagerank, shortest paths, components and more over a file of edges"
SHOWN = "(default: %(default)s)"
PRINTABLE = ("table", "json", "csv")
OPTIONS = ("source", "damping", "supersteps", "tolerance", "partitions", "partitioning", "engine",
           "checkpoint-every")  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("algorithm", metavar="ALGORITHM", help="one of those above")
    add("edges", metavar="EDGES", help="file of edges, or - for standard input")
    add("--format-of-file", default="auto", metavar="NAME",
        help="what EDGES holds where its name does not say it: edges, adjacency, ldbc, csv, tsv, "
        f"parquet, arrow, mtx, metis {SHOWN}")  # fmt: skip
    add("--undirected", action="store_true", help="edges have no direction")
    add("--drop-duplicates", action="store_true", help="keep one of several equal edges")
    add("--drop-loops", action="store_true", help="drop edges from a vertex to itself")
    _add_algorithm_arguments(parser)
    _add_placement_arguments(parser)
    add("--out", metavar="FILE", type=Path, help="where the answer goes, with the ids of EDGES")
    add("--format", choices=("table", "json", "csv", "parquet", "arrow"),
        help="of the answer (default: what FILE ends in, or table)")  # fmt: skip
    add("--explain", action="store_true", help="read the graph, say what it would cost and stop")
    add("--resume", action="store_true", help="go on from the last checkpoint")
    add("--force", action="store_true", help="replace FILE, or an unfinished run, if it exists")
    add("--runs", type=Path, default=Path("runs"), metavar="DIR", help=f"run directories {SHOWN}")


def _add_algorithm_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--source", metavar="ID", action="append", default=[],
        help="where bfs and sssp start, and pagerank starts again; may be given several times")  # fmt: skip
    add("--damping", action=Number, parse=number(at_least=0, at_most=1), metavar="X",
        help="of pagerank (default: 0.85)")  # fmt: skip
    add("--supersteps", action=Number, parse=count(), metavar="N",
        help="of pagerank (default: 20, at most 100 with --tolerance) and communities (default: 10)")  # fmt: skip
    add("--tolerance", action=Number, parse=number(above=0), metavar="X",
        help="pagerank ends when all changes of a superstep add up to less")  # fmt: skip


def _add_placement_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--partitions", action=Number, parse=count(), default="1", metavar="P",
        help=f"pieces of the graph, at most 1,000 and as many as it has vertices {SHOWN}")  # fmt: skip
    add("--partitioning", default="ranges", metavar="HOW",
        help=f"ranges, hash, or vertex_cut (bfs, sssp, pagerank) {SHOWN}")  # fmt: skip
    add("--engine", default="embedded", metavar="NAME",
        help=f"embedded, ray (of our own, on this machine) or ray://HOST:PORT {SHOWN}")  # fmt: skip
    add("--checkpoint-every", action=Number, parse=count(), metavar="N",
        help="supersteps between checkpoints (default: from what one costs)")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    from talka.cli.graph_answers import print_answer, print_answer_as_csv, print_answer_as_json
    from talka.cli.graph_progress import SuperstepLines
    from talka.errors import InvalidValueError
    from talka.jobs.base import execute
    from talka.jobs.graph import GraphJob

    if args.out is None and args.format not in (None, *PRINTABLE):
        allowed = f"{', '.join(PRINTABLE)} without --out"
        raise InvalidValueError("--format", args.format, allowed)
    job = GraphJob(
        config_of(args),
        args.out,
        format=args.format,
        resume=args.resume,
        force=args.force,
        watch=SuperstepLines().show if sys.stderr.isatty() else None,
    )
    if args.explain:
        return _explain(job, as_json=args.format == "json")
    try:
        with typed_names():
            finished = execute(job, job.explain(), root=args.runs)
    except (KeyboardInterrupt, SystemExit):
        if job.can_be_resumed:
            print(f"talka graph: {args.out}.unfinished has a checkpoint; the same command with "
                  "--resume goes on from there", file=sys.stderr)  # fmt: skip
        raise
    if args.format == "json":
        print_answer_as_json(job.answer, finished, args.out)
    elif args.format == "csv" and args.out is None:
        print_answer_as_csv(job.answer, args.algorithm)
    else:
        print_answer(job.answer, finished, args.out)
    return 0


def config_of(args: argparse.Namespace) -> "GraphConfig":
    """The options of the command line, checked."""
    from talka.jobs.graph import Arguments, GraphConfig, Input, Placement

    with typed_names():
        return GraphConfig(
            algorithm=args.algorithm,
            input=Input(
                edges=args.edges,
                file_format=args.format_of_file,
                undirected=args.undirected,
                drop_duplicates=args.drop_duplicates,
                drop_loops=args.drop_loops,
            ),
            arguments=Arguments(
                source=tuple(args.source),
                damping=args.damping,
                supersteps=args.supersteps,
                tolerance=args.tolerance,
            ),
            placement=Placement(
                partitions=args.partitions,
                partitioning=args.partitioning,
                engine=args.engine,
                checkpoint_every=args.checkpoint_every,
            ),
        )


@contextlib.contextmanager
def typed_names() -> Iterator[None]:
    """Name a wrong value as it was typed."""
    from talka.errors import InvalidValueError

    try:
        yield
    except InvalidValueError as error:
        name = error.name.removeprefix("num_").replace("_", "-")
        if name not in OPTIONS:
            raise
        raise InvalidValueError(f"--{name}", error.given, error.allowed) from None


def _explain(job: "GraphJob", *, as_json: bool) -> int:
    """Read and cut, show the plan; run nothing."""
    from talka.cli.costs import print_predicted
    from talka.cli.graph_answers import LATER_SUPERSTEPS
    from talka.cli.tables import print_json
    from talka.events import Stream, progress_in_terminal
    from talka.units import format_bytes, format_count

    events = Stream()
    with progress_in_terminal(events), typed_names():
        plan = job.load(events)
    predicted = job.explain()
    if as_json:
        print_json({"plan": plan._asdict(), "predicted": [asdict(one) for one in predicted]})
        return 0
    vertices, edges = format_count(plan.num_vertices), format_count(plan.num_edges)
    memory, peak = format_bytes(plan.graph_bytes), format_bytes(plan.peak_bytes)
    print(f"graph      {vertices} vertices, {edges} edges")
    print(f"partitions {plan.num_partitions}, the largest {plan.balance:.2f} times the mean; "
          f"{plan.cut_edges:.0%} of the edges cut, {format_count(plan.num_mirrors)} mirrors")  # fmt: skip
    print(f"memory     {memory}, {peak} at the peak of building\n")
    print_predicted([one for one in predicted if not LATER_SUPERSTEPS.fullmatch(one.part)])
    return 0
