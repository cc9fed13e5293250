"""Predict the cost of collectives and exchanges on the given links, in bytes and seconds.

A transfer takes the latency of the link plus bytes / rate. Each host has one port: everything it
sends shares the rate of its link, and so does everything it receives (at the rate down, if given).
Rounds run one after another.
"""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from talka.cli.networks import add_network, describe_network, network_of
from talka.cli.numbers import Number, size
from talka.cli.options import SHOWN, add_format
from talka.cli.tables import print_json, print_table, print_text
from talka.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from talka.network import Network, Scheme

HELP = "predict the cost of collectives and exchanges on given links"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bytes", metavar="SIZE", action=Number, parse=size(), default="25MB",
        help=f"payload of each worker {SHOWN}")  # fmt: skip
    add_network(parser, workers=8, rate_up="1gbit")
    add_format(parser)


def run(args: argparse.Namespace) -> int:
    from talka.network import COLLECTIVES, EXCHANGES, cheapest_average

    network = network_of(args)
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
        "rates_down_bits_per_s": [link.rate_down_bits_per_s for link in network.links],
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
