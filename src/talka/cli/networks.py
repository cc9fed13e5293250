"""Options and descriptions of networks, for the topics of `talka explain`."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from talka.cli.numbers import Number, count, rate, seconds
from talka.cli.options import SHOWN
from talka.errors import InvalidValueError, OptionError
from talka.units import format_rate, format_seconds, parse_rate

if TYPE_CHECKING:
    from talka.network import Link, Network

MAX_WORKERS: Final = 1000  # pairs of workers and servers grow with the square
LONGEST_S: Final = 1e6


def add_network(parser: argparse.ArgumentParser, *, workers: int, rate_up: str) -> None:
    """Add the options that describe a network, with the given defaults."""
    add = parser.add_argument
    add("--network", metavar="FILE.toml", type=Path,
        help="read workers, hosts and links from a hosts file instead; `talka probe --out` "
        "writes one")  # fmt: skip
    add("--workers", metavar="P", action=Number, parse=count(at_most=MAX_WORKERS),
        help=f"number of workers (default: {workers}, or the number of --rates)")  # fmt: skip
    rates = parser.add_mutually_exclusive_group()
    rates.add_argument(
        "--rate", action=Number, parse=rate(), default=rate_up,
        help=f"rate of every link; `talka probe` measures it {SHOWN}")  # fmt: skip
    rates.add_argument(
        "--rates", metavar="RATE,...", help="for unequal links: one rate per worker or host"
    )
    rates_down = parser.add_mutually_exclusive_group()
    rates_down.add_argument(
        "--rate-down", metavar="RATE", action=Number, parse=rate(),
        help="rate at which every host receives, if it is not that at which it sends")  # fmt: skip
    rates_down.add_argument(
        "--rates-down", metavar="RATE,...", help="the same for unequal links, as in --rates"
    )
    add("--latency", metavar="TIME", action=Number, parse=seconds(at_most=LONGEST_S),
        default="0.1ms", help=f"latency of every link {SHOWN}")  # fmt: skip
    add("--hosts", metavar="H", action=Number, parse=count(at_most=MAX_WORKERS),
        help="spread P workers over H hosts with one link each (default: P)")  # fmt: skip
    add("--inner-rate", metavar="RATE", action=Number, parse=rate(), default="20gbit",
        help=f"rate inside a host {SHOWN}")  # fmt: skip
    add("--inner-latency", metavar="TIME", action=Number, parse=seconds(at_most=LONGEST_S),
        default="0.03ms", help=f"latency inside a host {SHOWN}")  # fmt: skip
    names = ("workers", "rate", "rates", "rate_down", "rates_down", "latency", "hosts")
    defaults = {name: parser.get_default(name) for name in (*names, "inner_rate", "inner_latency")}
    parser.set_defaults(network_defaults=defaults, default_workers=workers)


def network_of(args: argparse.Namespace) -> "Network":
    """Return the network that the options of `add_network` describe."""
    from talka.network import Link, Network, read_hosts, spread

    if args.network is not None:
        for name, default in args.network_defaults.items():
            if getattr(args, name) != default:
                option = f"--{name.replace('_', '-')}"
                advice = "Remove one of them: a hosts file has all of the network."
                raise OptionError("--network", f"cannot be combined with {option}", advice)
        return read_hosts(args.network).network
    rates, rates_down = _rates("--rates", args.rates), _rates("--rates-down", args.rates_down)
    if rates_down is not None and rates is None:
        advice = "Add one rate up for each rate down: --rates RATE,..."
        raise OptionError("--rates-down", "needs --rates", advice)
    num_workers, num_hosts = args.workers, args.hosts
    if num_workers is None:
        num_workers = len(rates) if rates and num_hosts is None else args.default_workers
    if num_hosts is None:
        num_hosts = num_workers
    if num_hosts > num_workers:
        raise InvalidValueError(
            "--hosts", num_hosts, f"at most {num_workers}, the number of workers"
        )
    kind = "workers" if args.hosts is None else "hosts"
    for name, text in (("--rates", args.rates), ("--rates-down", args.rates_down)):
        num_rates = num_hosts if text is None else len(text.split(","))
        if num_rates != num_hosts:
            allowed = f"one rate for each of {num_hosts} {kind}, not {num_rates} rates"
            raise InvalidValueError(name, text, allowed)
    ups = rates or [args.rate] * num_hosts
    downs = rates_down or [args.rate_down] * num_hosts
    return Network(
        tuple(Link(args.latency, up, down) for up, down in zip(ups, downs, strict=True)),
        workers_per_host=spread(num_workers, num_hosts=num_hosts),
        inner=Link(args.inner_latency, args.inner_rate),
    )


def _rates(name: str, text: str | None) -> list[float] | None:
    if text is None:
        return None
    rates = [parse_rate(rate, name=name) for rate in text.split(",")]
    if len(rates) > MAX_WORKERS:
        raise InvalidValueError(name, f"{len(rates)} rates", f"at most {MAX_WORKERS}")
    return rates


def describe_network(network: "Network") -> str:
    """Describe a network in words, such as `links of 100 Mbit/s, latency 0.1 ms`."""
    rates = [format_link_rate(link) for link in network.links]
    links = f"links of {rates[0]}" if len(set(rates)) == 1 else f"links of {', '.join(rates)}"
    if max(network.workers_per_host) > 1:
        per_host = ", ".join(str(count) for count in network.workers_per_host)
        inner = f"{format_link_rate(network.inner)} inside a host"
        links = f"{len(rates)} hosts with {per_host} workers, {inner}, {links}"
    latencies = list(dict.fromkeys(format_seconds(link.latency_s) for link in network.links))
    return f"{links}, latency {', '.join(latencies)}"


def format_link_rate(link: "Link") -> str:
    """Return the rate of a link as text, or both rates if they differ."""
    up, down = format_rate(link.rate_bits_per_s), format_rate(link.rate_down_bits_per_s)
    return up if up == down else f"{up} up and {down} down"
