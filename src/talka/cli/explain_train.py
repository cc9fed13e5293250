"""What a training step of several workers would cost with each spec: bytes and seconds.

It is held against one machine and against plain DDP, and says so when one machine is faster. Nothing
overlaps in this prediction, so steps of models larger than 25 MB can be shorter. Every worker has a
batch as large as that of one machine: speeds are samples a second. What encoding takes is measured
here, on one core.
"""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from talka.cli.networks import described, parse_size
from talka.cli.tables import print_json, print_table
from talka.errors import InvalidValueError
from talka.units import (
    format_bytes,
    format_count,
    format_seconds,
    parse_count,
    parse_rate,
    parse_seconds,
)

if TYPE_CHECKING:
    from talka.compress import Layout
    from talka.network import Network
    from talka.train.predictions import StepPrediction

HELP = "what a training step costs with each compressor, against one machine"
MAX_PARAMETERS = 10**12
LONGEST_S = 1e6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add, shown = parser.add_argument, "(default: %(default)s)"
    add("--parameters", metavar="N", help="number of values that are trained, such as 2.9M")
    add("--model", metavar="FILE.py:FUNCTION", help="or a function that returns the nn.Module")
    add("--workers", metavar="P", default="4", help=f"number {shown}")
    add(
        "--rate", default="100mbit", help=f"of every host's link; `talka probe` measures it {shown}"
    )
    add("--latency", metavar="TIME", default="0.1ms", help=f"of every link {shown}")
    add("--hosts", metavar="H", help="spread P workers over H hosts, one link each (default: P)")
    add("--step-seconds", metavar="TIME", help="that one machine computes for a step, such as 60ms")
    add(
        "--spec", nargs="+", action="extend", metavar="SPEC",
        help="what to compare, such as onebit+ef (default: one of each kind)",
    )  # fmt: skip
    add("--format", choices=("table", "json"), default="table", help=f"of the output {shown}")


def run(args: argparse.Namespace) -> int:
    network = _network(args)
    compute_s = None if args.step_seconds is None else _seconds(args.step_seconds, "--step-seconds")
    if compute_s == 0:
        raise InvalidValueError("--step-seconds", args.step_seconds, "above 0")
    layout = _layout(args)

    rows = _predicted(layout, network, compute_s, args.spec) if network.num_workers > 1 else []

    from talka.train.verdict import verdict

    said = verdict(rows, layout, network)
    if args.format == "json":
        print_json(_as_json(rows, layout, network, said))
    else:
        _print(rows, layout, network, [said, *_notes(args, rows)])
    return 0


def _network(args: argparse.Namespace) -> "Network":
    from talka.network import Link, Network

    num_workers = parse_size(args.workers, name="--workers")
    num_hosts = num_workers if args.hosts is None else parse_size(args.hosts, name="--hosts")
    if num_hosts > num_workers:
        raise InvalidValueError("--hosts", num_hosts, f"at most the {num_workers} workers")
    rate = parse_rate(args.rate, name="--rate")
    if not 1 <= rate <= 1e15:
        raise InvalidValueError("--rate", args.rate, "from 1bit to 1000tbit")
    link = Link(_seconds(args.latency, "--latency"), rate)
    return Network.equal(link, num_workers, num_hosts=num_hosts)


def _seconds(text: str, name: str) -> float:
    seconds = parse_seconds(text, name=name)
    if seconds > LONGEST_S:
        raise InvalidValueError(name, text, f"at most {format_seconds(LONGEST_S)}")
    return seconds


def _layout(args: argparse.Namespace) -> "Layout":
    if args.model is not None:
        if args.parameters is not None:
            raise InvalidValueError("--model", args.model, "left out where --parameters is given")
        from talka.cli.model_files import layout_of_model

        return layout_of_model(args.model)
    if args.parameters is None:
        allowed = "a number such as 2.9M, unless --model FILE.py:FUNCTION is given"
        raise InvalidValueError("--parameters", None, allowed)
    count = parse_count(args.parameters, name="--parameters")
    if not 1 <= count <= MAX_PARAMETERS:
        allowed = f"a whole number from 1 to {format_count(MAX_PARAMETERS)}"
        raise InvalidValueError("--parameters", args.parameters, allowed)

    from talka.compress import layout_of
    from talka.train.codec_rates import square_shape

    rows, columns = square_shape(count)
    return layout_of({"weight": (rows, columns), "bias": (count - rows * columns,)})


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
