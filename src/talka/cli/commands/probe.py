"""Measure latency and rate between all ranks, in a few seconds: what the links really do.

Every rank runs it, and rank 0 prints:

    talka lab --hosts 3 --rate 100mbit -- talka probe
    torchrun --nnodes 3 --nproc-per-node 1 ... -m talka probe

Rates are of payload: of 100 Mbit/s, TCP and Ethernet headers leave 95.6. With --workers it measures
processes of this machine, over loopback.
"""

import argparse
import os
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from talka.cli.numbers import Number, count, seconds
from talka.cli.options import SHOWN, add_format
from talka.cli.tables import print_json, print_table
from talka.errors import OptionError
from talka.units import format_rate, format_seconds

if TYPE_CHECKING:
    from talka.engine import GangWorker
    from talka.exchange.links.probe import Matrix, ProbeResult

MAX_WORKERS = 64
SHORTEST_S, LONGEST_S = 0.01, 3600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--seconds", metavar="TIME", action=Number, default="2s",
        parse=seconds(at_least=SHORTEST_S, at_most=LONGEST_S),
        help=f"to spend, roughly {SHOWN}")  # fmt: skip
    add("--workers", metavar="N", action=Number, parse=count(at_least=2, at_most=MAX_WORKERS),
        help="start N processes here, 2 or more, instead of joining ranks")  # fmt: skip
    add_format(parser)


def run(args: argparse.Namespace) -> int:
    from talka.engine import Embedded

    size = _size(args.workers)
    with Embedded() as engine:
        measured = engine.gang(_measure, args.seconds, size=size)[0]
    _leave_group()
    if os.environ.get("RANK", "0") == "0":
        from talka.exchange.links.probe import ProbeResult

        _print(ProbeResult(*measured), args.format)
    return 0


def _size(workers: int | None) -> int:
    if workers is not None:
        return workers
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        return int(os.environ["WORLD_SIZE"])
    raise OptionError(
        "--workers",
        "is missing, and this is not a rank of the lab or of torchrun",
        "Give --workers N to measure processes of this machine, or run "
        "`talka lab --hosts 3 --rate 100mbit -- talka probe` or `torchrun ... -m talka probe`.",
    )


def _leave_group() -> None:
    """A process that ends as a member of a group may be aborted on its way out."""
    import torch.distributed as dist

    if dist.is_initialized():
        dist.destroy_process_group()


def _measure(worker: "GangWorker", seconds: float) -> tuple[Any, ...]:
    from talka.exchange.links.probe import probe

    result = probe(seconds=seconds)
    return result.hosts, result.latency_s, result.rate_bits_per_s


def _print(result: "ProbeResult", output_format: str) -> None:
    links = result.network().links
    if output_format == "json":
        rows = [asdict(link) for link in links]
        print_json({**asdict(result), "links": [{"host": h, **row} for h, row in enumerate(rows)]})
        return
    _print_matrix("rate from rank to rank", result.rate_bits_per_s, format_rate)
    _print_matrix("\nlatency, one way", result.latency_s, format_seconds)
    rows = [
        {
            "host": host,
            "ranks": result.hosts.count(host),
            "rate": format_rate(link.rate_bits_per_s),
            "latency": format_seconds(link.latency_s),
        }
        for host, link in enumerate(links)
    ]
    print_table(rows, title="\nlinks", right=("rate", "latency"))


def _print_matrix(title: str, matrix: "Matrix", shown: Callable[[float], str]) -> None:
    rows = []
    for rank, values in enumerate(matrix):
        cells = {str(other): shown(value) if value else "" for other, value in enumerate(values)}
        rows.append({"rank": rank, **cells})
    print_table(rows, title=title, right=tuple(rows[0]))
