"""Measure latency and rate between all ranks, in a few seconds.

Every rank runs this command, and rank 0 prints the result:

    talka lab --hosts 3 --rate 100mbit -- talka probe
    torchrun --nnodes 3 --nproc-per-node 1 ... -m talka probe

Rates count payload only: TCP and Ethernet headers leave 95.6 of 100 Mbit/s. With --workers the
command measures processes on this machine, over loopback.
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
        help=f"approximate duration of the measurement {SHOWN}")  # fmt: skip
    add("--workers", metavar="N", action=Number, parse=count(at_least=2, at_most=MAX_WORKERS),
        help="start N processes (at least 2) on this machine instead of joining ranks")  # fmt: skip
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
        "is missing, and this process is not a rank of `talka lab` or torchrun",
        "Use --workers N to measure processes on this machine, or run "
        "`talka lab --hosts 3 --rate 100mbit -- talka probe` or `torchrun ... -m talka probe`.",
    )


def _leave_group() -> None:
    """Destroy the process group: a process that exits as a member may be aborted."""
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
    _print_matrix("Rate from rank (row) to rank (column)", result.rate_bits_per_s, format_rate)
    _print_matrix("\nOne-way latency", result.latency_s, format_seconds)
    rows = [
        {
            "host": host,
            "ranks": result.hosts.count(host),
            "rate up": format_rate(link.rate_bits_per_s),
            "rate down": format_rate(link.rate_down_bits_per_s),
            "latency": format_seconds(link.latency_s),
        }
        for host, link in enumerate(links)
    ]
    print_table(rows, title="\nLinks", right=("rate up", "rate down", "latency"))


def _print_matrix(title: str, matrix: "Matrix", as_text: Callable[[float], str]) -> None:
    rows = []
    for rank, values in enumerate(matrix):
        cells = {str(other): as_text(value) if value else "" for other, value in enumerate(values)}
        rows.append({"rank": rank, **cells})
    print_table(rows, title=title, right=tuple(rows[0]))
