"""Predict the cost of collectives and exchanges on the given links, in bytes and seconds.

A transfer takes the latency of the link plus bytes / rate. Each host has one port: everything it
sends shares the rate of its link, and so does everything it receives. Rounds run one after another.
"""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from talka.cli.networks import HOSTS_HELP, MAX_WORKERS, describe_network
from talka.cli.numbers import Number, count, rate, seconds, size
from talka.cli.options import SHOWN, add_format
from talka.cli.tables import print_json, print_table, print_text
from talka.errors import InvalidValueError
from talka.units import format_bytes, format_seconds, parse_rate

if TYPE_CHECKING:
    from talka.network import Network, Scheme

HELP = "predict the cost of collectives and exchanges on given links"
DEFAULT_WORKERS = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--workers", metavar="P", action=Number, parse=count(at_most=MAX_WORKERS),
        help="number of workers "
        f"(default: {DEFAULT_WORKERS}, or the number of --rates)")  # fmt: skip
    add("--bytes", metavar="SIZE", action=Number, parse=size(), default="25MB",
        help=f"payload of each worker {SHOWN}")  # fmt: skip
    rates = parser.add_mutually_exclusive_group()
    rates.add_argument(
        "--rate", action=Number, parse=rate(), default="1gbit", help=f"rate of every link {SHOWN}"
    )
    rates.add_argument(
        "--rates", metavar="RATE,...", help="for unequal links: one rate per worker or host"
    )
    add("--latency", metavar="TIME", action=Number, parse=seconds(), default="0.1ms",
        help=f"latency of every link {SHOWN}")  # fmt: skip
    add("--hosts", metavar="H", action=Number, parse=count(at_most=MAX_WORKERS),
        help=HOSTS_HELP)  # fmt: skip
    add("--inner-rate", metavar="RATE", action=Number, parse=rate(), default="20gbit",
        help=f"rate inside a host {SHOWN}")  # fmt: skip
    add("--inner-latency", metavar="TIME", action=Number, parse=seconds(), default="0.03ms",
        help=f"latency inside a host {SHOWN}")  # fmt: skip
    add_format(parser)


def run(args: argparse.Namespace) -> int:
    from talka.network import COLLECTIVES, EXCHANGES, cheapest_average

    network = _network(args)
    payload_bytes = args.bytes
    groups = {
        "collectives": _rows(COLLECTIVES, network, payload_bytes),
        "exchanges": _rows(EXCHANGES, network, payload_bytes),
    }
    cheapest = cheapest_average(network, payload_bytes) if network.num_workers > 1 else None
    if args.format == "json":
        print_json({**_inputs(network, payload_bytes), **groups, "cheapest_average": cheapest})
    else:
        _print_tables(network, payload_bytes, groups, cheapest)
    return 0


def _network(args: argparse.Namespace) -> "Network":
    from talka.network import Link, Network, spread

    num_workers, num_hosts = args.workers, args.hosts
    rates = None
    if args.rates is not None:
        rates = [parse_rate(rate, name="--rates") for rate in args.rates.split(",")]
        if len(rates) > MAX_WORKERS:
            raise InvalidValueError("--rates", f"{len(rates)} rates", f"at most {MAX_WORKERS}")
    if num_workers is None:
        num_workers = len(rates) if rates and num_hosts is None else DEFAULT_WORKERS
    if num_hosts is None:
        num_hosts = num_workers
    if num_hosts > num_workers:
        raise InvalidValueError(
            "--hosts", num_hosts, f"at most {num_workers}, the number of workers"
        )
    if rates is None:
        rates = [args.rate] * num_hosts
    if len(rates) != num_hosts:
        kind = "workers" if args.hosts is None else "hosts"
        allowed = f"one rate for each of {num_hosts} {kind}, not {len(rates)} rates"
        raise InvalidValueError("--rates", args.rates, allowed)
    return Network(
        tuple(Link(args.latency, rate) for rate in rates),
        workers_per_host=spread(num_workers, num_hosts=num_hosts),
        inner=Link(args.inner_latency, args.inner_rate),
    )


def _rows(
    schemes: Mapping[str, "Scheme"], network: "Network", payload_bytes: float
) -> list[dict[str, Any]]:
    rows = []
    for name, scheme in schemes.items():
        cost = scheme.cost(network, payload_bytes)
        rows.append(
            {
                "scheme": name,
                "what": scheme.what,
                "averages": scheme.averages,
                "max_sent_bytes": cost.max_sent_bytes,
                "total_bytes": cost.total_bytes,
                "seconds": cost.seconds,
                "rounds": cost.num_rounds,
                "why": cost.reason,
                "sent_bytes_by_rank": cost.sent_bytes_by_rank,
                "received_bytes_by_rank": cost.received_bytes_by_rank,
            }
        )
    return rows


def _inputs(network: "Network", payload_bytes: int) -> dict[str, Any]:
    return {
        "workers": network.num_workers,
        "payload_bytes": payload_bytes,
        "latency_s": network.links[0].latency_s,
        "rates_bits_per_s": [link.rate_bits_per_s for link in network.links],
        "workers_per_host": network.workers_per_host,
        "inner_latency_s": network.inner.latency_s,
        "inner_rate_bits_per_s": network.inner.rate_bits_per_s,
    }


def _print_tables(
    network: "Network",
    payload_bytes: int,
    groups: Mapping[str, list[dict[str, Any]]],
    cheapest: str | None,
) -> None:
    print_text(describe_network(network))
    print_text(
        f"P = {network.num_workers} workers, B = {format_bytes(payload_bytes)} payload per worker"
    )
    for group, rows in groups.items():
        marked = cheapest if group == "exchanges" else None
        print_table(
            [_cells(row, is_cheapest=row["scheme"] == marked) for row in rows],
            title=f"\n{group.capitalize()}",
            right=("busiest sends", "total sent", "time"),
            prose=("description", "reason"),
        )
    if cheapest:
        print("\n* the cheapest exchange that gives every worker the average")


def _cells(row: Mapping[str, Any], *, is_cheapest: bool) -> dict[str, str]:
    return {
        "scheme": row["scheme"] + (" *" if is_cheapest else ""),
        "busiest sends": format_bytes(row["max_sent_bytes"]),
        "total sent": format_bytes(row["total_bytes"]),
        "time": format_seconds(row["seconds"]),
        "description": row["what"],
        "reason": row["why"],
    }
