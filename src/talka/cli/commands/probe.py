"""Measure latency and rate between all ranks, in a few seconds.

Every rank runs this command, and rank 0 prints the result:

    talka lab --hosts 3 --rate 100mbit -- talka probe
    torchrun --nnodes 3 --nproc-per-node 1 ... -m talka probe

Rates count payload only: TCP and Ethernet headers leave 95.6 of 100 Mbit/s. With --workers the
command measures processes on this machine, over loopback. With --out, rank 0 writes the network to a
hosts file, which `talka explain` reads with --network.
"""

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

from talka.cli.numbers import Number, count, seconds
from talka.cli.options import SHOWN, add_format, add_out
from talka.cli.tables import print_json, print_table
from talka.errors import OptionError, OutputError
from talka.units import format_bytes, format_rate, format_seconds

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
    add_out(parser, "FILE.toml", note=": a new hosts file, written by rank 0")
    add_format(parser)


def run(args: argparse.Namespace) -> int:
    from talka.engine import Embedded

    size, leads = _size(args.workers), os.environ.get("RANK", "0") == "0"
    if leads and args.out is not None and args.out.exists():
        raise OutputError(str(args.out), "exists already", "Give another name, or remove it.")
    with Embedded() as engine:
        *measured, facts = engine.gang(_measure, args.seconds, size=size)[0]
    _leave_group()
    if leads:
        from talka.exchange.links.calls import CallTimes
        from talka.exchange.links.probe import ProbeResult

        hosts, latency_s, rates, bursts, calls = measured
        times = None if calls is None else CallTimes(*calls)
        result = ProbeResult(hosts, latency_s, rates, bursts, times)
        _print(result, args.format)
        if args.out is not None:
            _write(result, facts, args.out)
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
    from talka.exchange.links.hosts import facts_of_all
    from talka.exchange.links.probe import probe
    from talka.exchange.transport import group_of

    result = probe(seconds=seconds)
    facts = [tuple(of_rank) for of_rank in facts_of_all(group_of(None, "facts"))]
    calls = None if result.calls is None else tuple(result.calls)
    matrices = (result.latency_s, result.rate_bits_per_s, result.burst_bytes)
    return result.hosts, *matrices, calls, facts


def _write(result: "ProbeResult", facts: Sequence[tuple[str, str, int]], out: Path) -> None:
    """Write the hosts file, with three digits of each measurement; hosts of one name get numbers."""
    from talka.network import Hosts, Link, NetworkHost, SharedCores, write_hosts

    def rounded(link: Link) -> Link:
        return Link(*(float(f"{value:.3g}") for value in astuple(link)))

    network = result.network()
    first_ranks = [result.hosts.index(host) for host in sorted(set(result.hosts))]
    names = [facts[rank][0] for rank in first_ranks]
    hosts = []
    for host, rank in enumerate(first_ranks):
        name, address, num_cores = facts[rank]
        if names.count(name) > 1:
            name = f"{name}-{host}"
        link, num_workers = rounded(network.links[host]), network.workers_per_host[host]
        hosts.append(NetworkHost(name, link, num_workers, num_cores, address))
    cores = network.cores
    if cores is not None:
        cores = SharedCores(cores.num_cores, float(f"{cores.call_s:.3g}"))
    write_hosts(out, Hosts(tuple(hosts), rounded(network.inner), cores))


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
            "burst": format_bytes(link.burst_bytes),
            "per message": format_seconds(link.overhead_s),
        }
        for host, link in enumerate(links)
    ]
    print_table(rows, title="\nLinks", right=tuple(rows[0])[2:])


def _print_matrix(title: str, matrix: "Matrix", as_text: Callable[[float], str]) -> None:
    rows = []
    for rank, values in enumerate(matrix):
        cells = {str(other): as_text(value) if value else "" for other, value in enumerate(values)}
        rows.append({"rank": rank, **cells})
    print_table(rows, title=title, right=tuple(rows[0]))
