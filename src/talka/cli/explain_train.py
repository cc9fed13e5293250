"""What a training step of several workers would cost with each spec: bytes and seconds.

It is held against one machine and against plain DDP, and says so when one machine is faster. Nothing
overlaps in this prediction, so steps of models larger than 25 MB can be shorter. Every worker has a
batch as large as that of one machine: speeds are samples a second. What encoding takes is measured
here, on one core.
"""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from talka.cli.networks import MAX_WORKERS, described
from talka.cli.numbers import Number, count, rate, seconds
from talka.cli.tables import print_json, print_table
from talka.errors import InvalidValueError
from talka.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from talka.compress import Layout
    from talka.network import Network
    from talka.train.predictions import StepPrediction

HELP = "what a training step costs with each compressor, against one machine"
MAX_PARAMETERS = 10**12
SHORTEST_S, LONGEST_S = 1e-6, 1e6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add, shown = parser.add_argument, "(default: %(default)s)"
    add("--parameters", metavar="N", action=Number, parse=count(at_most=MAX_PARAMETERS),
        help="number of values that are trained, such as 2.9M")  # fmt: skip
    add("--model", metavar="FILE.py:FUNCTION", help="or a function that returns the nn.Module")
    add("--workers", metavar="P", action=Number, parse=count(at_most=MAX_WORKERS), default="4",
        help=f"number {shown}")  # fmt: skip
    add("--rate", action=Number, parse=rate(), default="100mbit",
        help=f"of every host's link; `talka probe` measures it {shown}")  # fmt: skip
    add("--latency", metavar="TIME", action=Number, parse=seconds(at_most=LONGEST_S),
        default="0.1ms", help=f"of every link {shown}")  # fmt: skip
    add("--hosts", metavar="H", action=Number, parse=count(at_most=MAX_WORKERS),
        help="spread P workers over H hosts, one link each (default: P)")  # fmt: skip
    add("--step-seconds", metavar="TIME", action=Number,
        parse=seconds(at_least=SHORTEST_S, at_most=LONGEST_S),
        help="that one machine computes for a step, such as 60ms")  # fmt: skip
    add(
        "--spec", nargs="+", action="extend", metavar="SPEC",
        help="what to compare, such as onebit+ef (default: one of each kind)",
    )  # fmt: skip
    add("--format", choices=("table", "json"), default="table", help=f"of the output {shown}")


def run(args: argparse.Namespace) -> int:
    network = _network(args)
    layout = _layout(args)

    rows = []
    if network.num_workers > 1:
        rows = _predicted(layout, network, args.step_seconds, args.spec)

    from talka.train.verdict import verdict

    said = verdict(rows, layout, network)
    if args.format == "json":
        print_json(_as_json(rows, layout, network, said))
    else:
        _print(rows, layout, network, [said, *_notes(args, rows)])
    return 0


def _network(args: argparse.Namespace) -> "Network":
    from talka.network import Link, Network

    num_hosts = args.workers if args.hosts is None else args.hosts
    if num_hosts > args.workers:
        raise InvalidValueError("--hosts", num_hosts, f"at most the {args.workers} workers")
    return Network.equal(Link(args.latency, args.rate), args.workers, num_hosts=num_hosts)


def _layout(args: argparse.Namespace) -> "Layout":
    if args.model is not None:
        if args.parameters is not None:
            raise InvalidValueError("--model", args.model, "left out where --parameters is given")
        from talka.cli.model_files import layout_of_model

        return layout_of_model(args.model)
    if args.parameters is None:
        allowed = "a number such as 2.9M, unless --model FILE.py:FUNCTION is given"
        raise InvalidValueError("--parameters", None, allowed)
    from talka.compress import layout_of
    from talka.train.codec_rates import square_shape

    rows, columns = square_shape(args.parameters)
    return layout_of({"weight": (rows, columns), "bias": (args.parameters - rows * columns,)})


def _predicted(
    layout: "Layout", network: "Network", compute_s: float | None, specs: Sequence[str] | None
) -> "list[StepPrediction]":
    """Encoding is measured on this machine, with a progress bar if somebody is looking."""
    from talka.events import Stream, progress_in_terminal
    from talka.train.codec_rates import CodecRates, measure_codec
    from talka.train.predictions import DEFAULT_SPECS, predict_steps

    specs = list(dict.fromkeys(specs or DEFAULT_SPECS))
    stream = Stream()
    with (
        progress_in_terminal(stream),
        stream.phase("measure encoding", total=len(specs), unit="specs") as phase,
    ):

        def measured(spec: str) -> CodecRates:
            rates = measure_codec(spec, _num_values(layout))
            phase.advance()
            return rates

        return predict_steps(
            layout, network, compute_s=compute_s, specs=specs, codec_rates=measured
        )


def _notes(args: argparse.Namespace, rows: "Sequence[StepPrediction]") -> list[str]:
    if not rows:
        return []
    notes = []
    if args.step_seconds is None:
        notes.append(
            "Only the exchange is compared: --step-seconds TIME, what one machine computes for a "
            "step, gives the speed against one machine."
        )
    elif args.hosts is not None:
        notes.append("One machine is one worker alone.")
    if args.model is None and any(row.exchange == "low-rank" for row in rows):
        notes.append("Parameters were taken as one square matrix; --model has the real shapes.")
    if any(row.spec != "none" for row in rows):
        notes.append("A step of what is lossy may teach less: compare losses after a run, too.")
    return notes


def _as_json(
    rows: "Sequence[StepPrediction]", layout: "Layout", network: "Network", said: str
) -> dict[str, Any]:
    best = _best(rows)
    return {
        "workers": network.num_workers,
        "hosts": len(network.links),
        "rate_bits_per_s": network.links[0].rate_bits_per_s,
        "latency_s": network.links[0].latency_s,
        "parameters": _num_values(layout),
        "rows": [
            {
                **_fields(row),
                "best": row is best,
                "runners_up": [_fields(other) for other in row.runners_up],
            }
            for row in rows
        ],
        "verdict": said,
    }


def _fields(row: "StepPrediction") -> dict[str, Any]:
    return {
        "spec": row.spec,
        "exchange": row.exchange,
        "sent_bytes_per_worker": row.sent_bytes_per_worker,
        "compute_s": row.compute_s,
        "codec_s": row.codec_s,
        "network_s": row.network_s,
        "step_s": row.step_s,
        "speed_vs_one_machine": row.speed_vs_one,
        "speed_vs_ddp": row.speed_vs_ddp,
        "reason": row.reason,
    }


def _print(
    rows: "Sequence[StepPrediction]", layout: "Layout", network: "Network", notes: Sequence[str]
) -> None:
    values = format_count(_num_values(layout))
    computing = ""
    if rows and rows[0].compute_s is not None:
        computing = f", computing {format_seconds(rows[0].compute_s)} a step"
    print(
        f"{values} parameters, P = {network.num_workers} workers, {described(network)}{computing}"
    )
    if rows:
        best = _best(rows)
        print()
        numbers = ("sent", "codec", "network", "step", "vs one machine", "vs DDP")
        print_table([_cells(row, is_best=row is best) for row in rows], right=numbers)
        print("* the shortest step")
    print("\n" + "\n".join(notes))


def _cells(row: "StepPrediction", *, is_best: bool) -> dict[str, str]:
    from talka.report.comparison import format_ratio

    cells = {
        "spec": row.spec + (" *" if is_best else ""),
        "exchange": row.exchange,
        "sent": format_bytes(row.sent_bytes_per_worker),
        "codec": format_seconds(row.codec_s),
        "network": format_seconds(row.network_s),
        "step": format_seconds(row.step_s),
        "vs one machine": format_ratio(row.speed_vs_one),
        "vs DDP": format_ratio(row.speed_vs_ddp),
        "why": row.reason,
    }
    if row.compute_s is None:
        del cells["step"], cells["vs one machine"]
    return cells


def _best(rows: "Sequence[StepPrediction]") -> "StepPrediction | None":
    from talka.train.predictions import fastest

    return fastest(rows) if rows else None


def _num_values(layout: "Layout") -> int:
    return sum(piece.num_values for piece in layout)
