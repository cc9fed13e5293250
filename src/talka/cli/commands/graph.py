"""Run a graph algorithm on a file of edges.

ALGORITHM is bfs, sssp, pagerank, components, strong-components, communities, clustering, triangles
or cores, which compute a value for every vertex, or degrees, which summarizes the whole graph.

EDGES is a file of edges: text (source target [weight]), .csv, .tsv, .parquet, .arrow, MatrixMarket
(.mtx), METIS (.metis, .graph), LDBC (.e, next to .v) or neighbour lists (.adj), optionally
compressed (.gz, .zst); - is standard input.

Without --out the most important rows are printed, or all rows with --format json or csv. FILE
appears when it is complete; until then FILE.unfinished holds checkpoints for --resume.
"""

import argparse
import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from talka.cli.numbers import Number, count, number
from talka.cli.options import (
    FORMATS,
    SHOWN,
    add_engine,
    add_explain,
    add_format,
    add_input_format,
    add_out,
    add_partitions,
    add_resume_and_force,
    add_runs,
    warn,
)

if TYPE_CHECKING:
    from talka.jobs.graph import GraphConfig, GraphLayout, GraphPlan

PRINTABLE = ("table", "json", "csv")
INPUT_FORMATS = ("edges", "adjacency", "ldbc", "csv", "tsv", "parquet", "arrow", "mtx", "metis")
OPTIONS = ("source", "damping", "supersteps", "tolerance", "partitions", "partitioning", "engine",
           "checkpoint-every")  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("algorithm", metavar="ALGORITHM", help="name of the algorithm, see above")
    add("edges", metavar="EDGES", help="file of edges, or - for standard input")
    add_input_format(parser, INPUT_FORMATS)
    add("--undirected", action="store_true", help="treat edges as undirected")
    add("--drop-duplicates", action="store_true", help="keep only one of several equal edges")
    add("--drop-loops", action="store_true", help="drop edges from a vertex to itself")
    _add_algorithm_arguments(parser)
    _add_placement_arguments(parser)
    add_out(parser, "FILE", note="; one row per vertex, with the ids of EDGES")
    add_format(parser, FORMATS, default=None, note="(default: by the suffix of FILE, or table)")
    add_explain(parser)
    add_resume_and_force(parser)
    add_runs(parser)


def _add_algorithm_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--source", metavar="ID", action="append", default=[],
        help="start vertex of bfs and sssp, restart vertex of pagerank; "
        "may be repeated")  # fmt: skip
    add("--damping", action=Number, parse=number(at_least=0, at_most=1), metavar="X",
        help="damping factor of pagerank (default: 0.85)")  # fmt: skip
    add("--supersteps", action=Number, parse=count(), metavar="N",
        help="number of supersteps of pagerank (default: 20, or at most 100 with --tolerance) and "
        "communities (default: 10)")  # fmt: skip
    add("--tolerance", action=Number, parse=number(above=0), metavar="X",
        help="stop pagerank when the changes of a superstep sum to less than this")  # fmt: skip


def _add_placement_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_partitions(parser, note="at most 1,000 and at most the number of vertices")
    add("--partitioning", default="ranges", metavar="HOW",
        help="how to partition the graph: ranges, hash or vertex_cut (bfs, sssp, pagerank) "
        f"{SHOWN}")  # fmt: skip
    add_engine(parser)
    add("--checkpoint-every", action=Number, parse=count(), metavar="N",
        help="supersteps between checkpoints (default: chosen by the cost of a "
        "checkpoint)")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    from talka.cli.graph_output import (
        SuperstepLines,
        print_answer,
        print_answer_as_csv,
        print_answer_as_json,
    )
    from talka.cli.options import hint_to_resume
    from talka.errors import InvalidValueError
    from talka.events import Stream, progress_in_terminal
    from talka.inputs import name_of
    from talka.jobs.base import execute, with_start
    from talka.jobs.graph import GraphPlan

    if args.out is None and args.format not in (None, *PRINTABLE):
        allowed = f"{', '.join(PRINTABLE)} without --out"
        raise InvalidValueError("--format", args.format, allowed)
    plan = GraphPlan(
        config_of(args),
        args.out,
        format=args.format,
        resume=args.resume,
        force=args.force,
        watch=SuperstepLines().show if sys.stderr.isatty() else None,
    )
    events = Stream()
    with progress_in_terminal(events), typed_names():
        layout = plan.prepare(events)
    if args.explain:
        return _explain(plan, layout, args)
    with typed_names(), hint_to_resume(args, lambda: plan.can_be_resumed):
        finished = execute(plan, with_start(plan), root=args.runs)
    if not finished.result["num_edges"]:
        warn(f"{name_of(args.edges)} has no edges.")
    if args.format == "json":
        print_answer_as_json(plan.answer, finished, args.out)
    elif args.format == "csv" and args.out is None:
        print_answer_as_csv(plan.answer, args.algorithm)
    else:
        print_answer(plan.answer, finished, args.out)
    return 0


def config_of(args: argparse.Namespace) -> "GraphConfig":
    """Return the checked configuration for the options of the command line."""
    from talka.jobs.graph import Arguments, GraphConfig, Input, Placement

    with typed_names():
        return GraphConfig(
            algorithm=args.algorithm,
            input=Input(
                edges=args.edges,
                file_format=args.input_format,
                directed=not args.undirected,
                drop_duplicates=args.drop_duplicates,
                drop_loops=args.drop_loops,
            ),
            arguments=Arguments(
                source=tuple(args.source),
                damping=args.damping,
                num_supersteps=args.supersteps,
                tolerance=args.tolerance,
            ),
            placement=Placement(
                num_partitions=args.partitions,
                partitioning=args.partitioning,
                engine=args.engine,
                checkpoint_every=args.checkpoint_every,
            ),
        )


@contextlib.contextmanager
def typed_names() -> Iterator[None]:
    """Report wrong values by the option names of the command line."""
    from talka.errors import InvalidValueError, OptionError

    try:
        yield
    except (InvalidValueError, OptionError) as error:
        name = error.name.removeprefix("num_").replace("_", "-")
        if name not in OPTIONS:
            raise
        raise type(error)(f"--{name}", *error.args[1:]) from None


def _explain(plan: "GraphPlan", layout: "GraphLayout", args: argparse.Namespace) -> int:
    """Print the plan, made from the graph or from a sample of it; run nothing."""
    from talka.cli.costs import plan_as_json, print_plan
    from talka.cli.graph_output import LATER_SUPERSTEPS
    from talka.cli.tables import print_json
    from talka.inputs import name_of
    from talka.jobs.base import with_start

    if not layout.num_edges:
        warn(f"{name_of(args.edges)} has no edges.")
    whole = with_start(plan)
    if args.format == "json":
        print_json({"graph": layout._asdict(), **plan_as_json(whole)})
        return 0
    _print_layout(layout)
    print_plan(whole, hidden=LATER_SUPERSTEPS)
    return 0


def _print_layout(layout: "GraphLayout") -> None:
    from talka.cli.tables import print_text
    from talka.units import format_bytes, format_count

    vertices, edges = format_count(layout.num_vertices), format_count(layout.num_edges)
    memory, peak = format_bytes(layout.graph_bytes), format_bytes(layout.peak_bytes)
    about, source = ("about ", ", estimated from a sample") if layout.is_estimate else ("", "")
    print_text(f"graph      {about}{vertices} vertices, {edges} edges{source}")
    print_text(
        f"partitions {layout.num_partitions}, the largest has {layout.balance:.2f} times the mean "
        f"number of edges; {layout.cut_edges:.0%} of the edges cut, "
        f"{format_count(layout.num_mirrors)} mirrors"
    )
    print_text(f"memory     {memory}, {peak} at the peak while building")
    print()
