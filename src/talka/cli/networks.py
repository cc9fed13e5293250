"""Options and descriptions of networks, for the topics of `talka explain`."""

from typing import TYPE_CHECKING, Final

from talka.units import format_rate, format_seconds

if TYPE_CHECKING:
    from talka.network import Network

MAX_WORKERS: Final = 1000  # pairs of workers and servers grow with the square
HOSTS_HELP: Final = "spread P workers over H hosts with one link each (default: P)"


def describe_network(network: "Network") -> str:
    """Describe a network in words, such as `links of 100 Mbit/s, latency 0.1 ms`."""
    rates = [format_rate(link.rate_bits_per_s) for link in network.links]
    links = f"links of {rates[0]}" if len(set(rates)) == 1 else f"links of {', '.join(rates)}"
    if max(network.workers_per_host) > 1:
        per_host = ", ".join(str(count) for count in network.workers_per_host)
        inner = f"{format_rate(network.inner.rate_bits_per_s)} inside a host"
        links = f"{len(rates)} hosts with {per_host} workers, {inner}, {links}"
    return f"{links}, latency {format_seconds(network.links[0].latency_s)}"
