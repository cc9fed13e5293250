"""Predict the cost of a training step with each compressor, in bytes and seconds.

The step is compared with one machine and with plain DDP. The prediction assumes that computing and
communication do not overlap, so steps of models larger than 25 MB can be shorter. Every worker has
the batch size of one machine, so speeds compare samples per second. Encoding speed is measured on
one core of this machine.

Each compressor has the exchange that `attach` opens for it unless another one is named; if another
one would be clearly faster, a line below the table names it.

With --rhythm, the table compares rhythms: averages in every step, averages that are applied S steps
late while computing continues, and LocalSGD with a round every K steps.
"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from talka.cli.networks import LONGEST_S, add_network, describe_network, network_of
from talka.cli.numbers import Number, count, seconds
from talka.cli.options import add_format, add_former_name
from talka.cli.tables import print_json, print_table, print_text
from talka.errors import OptionError
from talka.short_forms import parsed
from talka.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from talka.cli.model_files import ModelSize
    from talka.compress import Layout
    from talka.events import Stream
    from talka.network import Network
    from talka.train.predictions import StepPrediction
    from talka.train.rhythms.predictions import RhythmPrediction
    from talka.train.rhythms.short_forms import RhythmConfig

HELP = "predict the cost of a training step with each compressor"
MAX_PARAMETERS = 10**12
SHORTEST_S = 1e-6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--parameters", metavar="N", action=Number, parse=count(at_most=MAX_PARAMETERS),
        help="number of trainable parameters, such as 2.9M")  # fmt: skip
    add("--model", metavar="FILE.py:FUNCTION",
        help="instead of --parameters: a function that returns the nn.Module")  # fmt: skip
    add_network(parser, workers=4, rate_up="100mbit")
    add("--step-seconds", metavar="TIME", action=Number,
        parse=seconds(at_least=SHORTEST_S, at_most=LONGEST_S),
        help="time one machine computes per step, such as 60ms")  # fmt: skip
    option = add("--compressor", nargs="+", action="extend", metavar="NAME",
                 help="compressors to compare, such as onebit+ef (default: one of each "
                 "kind)")  # fmt: skip
    add_former_name(parser, "--spec", option)
    add("--rhythm", metavar="NAMES",
        help="rhythms to compare, such as every-step,delayed:1,local-sgd:50; needs "
        "--step-seconds")  # fmt: skip
    add_format(parser)


def run(args: argparse.Namespace) -> int:
    from talka.events import Stream, progress_in_terminal
    from talka.extras import require

    for compressor in args.compressor or ():
        parsed(compressor)  # a misspelt name is reported before torch is loaded
    rhythms = _rhythms(args)
    network = network_of(args)
    _check_model(args)
    require("torch", by="talka explain train")
    stream = Stream()
    with progress_in_terminal(stream):
        with stream.phase("train/load", total=1, unit="package") as phase:
            from talka.train.verdict import verdict

            phase.advance()
        layout, num_buffer_values = _size(args)
        rows = _predicted(layout, network, args, stream) if network.num_workers > 1 else []
    conclusion = verdict(rows, network)
    of_rhythms = _of_rhythms(rhythms, rows, network, num_buffer_values)
    if args.format == "json":
        answer = _as_json(rows, layout, network, conclusion)
        if rhythms:
            from talka.cli.rhythm_rows import rhythm_fields

            answer["rhythms"] = rhythm_fields(of_rhythms)
        print_json(answer)
    elif of_rhythms:
        _print_rhythms(of_rhythms, rows, layout, network)
    else:
        _print(rows, layout, network, [conclusion, *_notes(args, rows)])
    return 0


def _rhythms(args: argparse.Namespace) -> "list[RhythmConfig]":
    from talka.train.rhythms.short_forms import RhythmConfig

    if args.rhythm is None:
        return []
    names = list(dict.fromkeys(name.strip() for name in args.rhythm.split(",")))
    rhythms = [RhythmConfig.parse(name) for name in names]
    if args.step_seconds is None:
        advice = "Add the computing time of one machine per step, such as --step-seconds 60ms."
        raise OptionError("--rhythm", "needs --step-seconds", advice)
    return rhythms


def _of_rhythms(
    rhythms: "Sequence[RhythmConfig]",
    rows: "Sequence[StepPrediction]",
    network: "Network",
    num_buffer_values: int,
) -> "list[RhythmPrediction]":
    if not rhythms or not rows:
        return []
    from talka.train.rhythms.predictions import predict_rhythms

    return predict_rhythms(rhythms, rows, network, num_buffer_values=num_buffer_values)


def _check_model(args: argparse.Namespace) -> None:
    if args.model is not None and args.parameters is not None:
        raise OptionError("--model", "cannot be combined with --parameters", "Remove one of them.")
    if args.model is None and args.parameters is None:
        advice = "Add a number such as --parameters 2.9M, or --model FILE.py:FUNCTION."
        raise OptionError("--parameters", "is missing", advice)


def _size(args: argparse.Namespace) -> "ModelSize":
    from talka.cli.model_files import ModelSize, size_of_model
    from talka.compress import layout_of
    from talka.train.codec_rates import square_shape

    if args.model is not None:
        return size_of_model(args.model)
    rows, columns = square_shape(args.parameters)
    rest = args.parameters - rows * columns
    return ModelSize(layout_of({"weight": (rows, columns), "bias": (rest,)}), 0)


def _predicted(
    layout: "Layout", network: "Network", args: argparse.Namespace, stream: "Stream"
) -> "list[StepPrediction]":
    """Predict a step with each compressor; those that are not in the profile are measured."""
    from talka.exchange import CodecRates
    from talka.train.codec_rates import profiled_rates
    from talka.train.predictions import DEFAULT_SPECS, predict_steps

    specs = list(dict.fromkeys(args.compressor or DEFAULT_SPECS))
    with stream.phase("train/codecs", total=len(specs), unit="codecs") as phase:

        def known(spec: str) -> CodecRates:
            rates = profiled_rates(spec, stream)
            phase.advance()
            return rates

        return predict_steps(
            layout, network, compute_s=args.step_seconds, specs=specs, codec_rates=known
        )


def _notes(args: argparse.Namespace, rows: "Sequence[StepPrediction]") -> list[str]:
    if not rows:
        return []
    notes = []
    for row in rows:
        if row.cheaper is not None:
            notes.append(
                f"{row.spec} by {row.cheaper.exchange} would take "
                f"{format_seconds(row.cheaper.step_s)} instead of {format_seconds(row.step_s)}: "
                f'attach(ddp, "{row.spec}", exchange="{row.cheaper.exchange}").'
            )
    if args.step_seconds is None:
        notes.append(
            "Only the exchange is compared. Add --step-seconds TIME, the computing time of one "
            "machine per step, to compare with one machine."
        )
    elif args.hosts is not None:
        notes.append('"One machine" means a single worker.')
    if args.model is None and any(row.exchange == "low-rank" for row in rows):
        notes.append("The parameters are assumed to form one square matrix; --model uses the "
                     "real shapes.")  # fmt: skip
    if any(row.spec != "none" for row in rows):
        notes.append("A step with lossy compression may reduce the loss less: compare losses after "
                     "a run.")  # fmt: skip
    return notes


def _as_json(
    rows: "Sequence[StepPrediction]", layout: "Layout", network: "Network", conclusion: str
) -> dict[str, Any]:
    from talka.train.step_plan import plan_of_step

    best = _best(rows)
    return {
        "workers": network.num_workers,
        "hosts": len(network.links),
        "links": [asdict(link) for link in network.links],
        "parameters": _num_values(layout),
        "rows": [
            {
                **_fields(row),
                "best": row is best,
                "alternatives": [_fields(other) for other in row.alternatives],
            }
            for row in rows
        ],
        "plan": plan_of_step(rows).as_plain() if rows else None,
        "verdict": conclusion,
    }


def _fields(row: "StepPrediction") -> dict[str, Any]:
    return {
        "compressor": row.spec,
        "exchange": row.exchange,
        "sent_bytes_per_worker": row.price.cost.max_sent_bytes,
        "compute_s": row.compute_s,
        "codec_s": row.price.codec_s,
        "network_s": row.price.network_s,
        "step_s": row.step_s,
        "speed_vs_one_machine": row.speed_vs_one,
        "speed_vs_ddp": row.speed_vs_ddp,
        "reason": row.price.reason,
    }


def _print(
    rows: "Sequence[StepPrediction]", layout: "Layout", network: "Network", notes: Sequence[str]
) -> None:
    _print_task(rows, layout, network)
    if rows:
        best = _best(rows)
        print()
        numbers = ("sent", "codec", "network", "step", "vs one machine", "vs DDP")
        print_table(
            [_cells(row, is_best=row is best) for row in rows], right=numbers, prose=("reason",)
        )
        print("* the shortest step")
    print()
    for note in notes:
        print_text(note)


def _print_rhythms(
    of_rhythms: "Sequence[RhythmPrediction]",
    rows: "Sequence[StepPrediction]",
    layout: "Layout",
    network: "Network",
) -> None:
    from talka.cli.rhythm_rows import RHYTHM_NOTES, print_rhythms
    from talka.train.rhythms.predictions import rhythm_verdict

    _print_task(rows, layout, network)
    print()
    print_rhythms(of_rhythms)
    print()
    for note in (rhythm_verdict(of_rhythms, network), *RHYTHM_NOTES):
        print_text(note)


def _print_task(rows: "Sequence[StepPrediction]", layout: "Layout", network: "Network") -> None:
    values = format_count(_num_values(layout))
    computing = ""
    if rows and rows[0].compute_s is not None:
        computing = f", {format_seconds(rows[0].compute_s)} of computing per step"
    workers = f"P = {network.num_workers} workers"
    print_text(f"{values} parameters, {workers}, {describe_network(network)}{computing}")


def _cells(row: "StepPrediction", *, is_best: bool) -> dict[str, str]:
    from talka.report.comparison import format_ratio

    cells = {
        "compressor": row.spec + (" *" if is_best else ""),
        "exchange": row.exchange,
        "sent": format_bytes(row.price.cost.max_sent_bytes),
        "codec": format_seconds(row.price.codec_s),
        "network": format_seconds(row.price.network_s),
        "step": format_seconds(row.step_s),
        "vs one machine": format_ratio(row.speed_vs_one),
        "vs DDP": format_ratio(row.speed_vs_ddp),
        "reason": row.price.reason,
    }
    if row.compute_s is None:
        del cells["step"], cells["vs one machine"]
    return cells


def _best(rows: "Sequence[StepPrediction]") -> "StepPrediction | None":
    from talka.train.predictions import fastest

    return fastest(rows) if rows else None


def _num_values(layout: "Layout") -> int:
    return sum(piece.num_values for piece in layout)
