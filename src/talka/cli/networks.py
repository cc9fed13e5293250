"""Networks as options name them, and in words."""

from typing import TYPE_CHECKING

from talka.units import format_rate, format_seconds

if TYPE_CHECKING:
    from talka.network import Network

MAX_WORKERS = 1000  # the pairs of workers and servers grow with its square


def described(network: "Network") -> str:
    """Such as `links of 100 Mbit/s, latency 0.1 ms`."""
    rates = [format_rate(link.rate_bits_per_s) for link in network.links]
    links = f"links of {rates[0]}" if len(set(rates)) == 1 else f"links of {', '.join(rates)}"
    if max(network.workers_per_host) > 1:
        per_host = ", ".join(str(count) for count in network.workers_per_host)
        inner = f"{format_rate(network.inner.rate_bits_per_s)} inside"
        links = f"{len(rates)} hosts of {per_host} workers, {inner}, {links}"
    return f"{links}, latency {format_seconds(network.links[0].latency_s)}"
