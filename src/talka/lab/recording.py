"""Turns the configuration and the result of a run into events."""

from collections.abc import Iterator, Sequence

from talka.events import Event, Measured
from talka.lab.base import LabConfig, LabResult, address_of
from talka.lab.events import HostCounted, HostJoined, RankExited, TroublePlanned
from talka.lab.troubles import Cut, Kill, Pause, Trouble


def events_at_start(
    config: LabConfig, rates_bits_per_s: Sequence[float], troubles: Sequence[Trouble]
) -> Iterator[Event]:
    """Yield the hosts of a run, with the current rates of their links, and its troubles."""
    hosts = zip(rates_bits_per_s, config.cores_by_host, strict=True)
    for host, (rate, cores) in enumerate(hosts):
        yield HostJoined(
            host, address_of(host), rate, config.latency_s, cores, config.ranks_per_host
        )
    yield from map(_planned, troubles)


def events_at_end(result: LabResult) -> Iterator[Event]:
    """Yield the traffic of each host, the exit code of each rank, and the seconds of the run."""
    for host in result.hosts:
        yield HostCounted(host.host, host.sent_bytes, host.received_bytes)
    for rank in result.ranks:
        yield RankExited(rank.rank, rank.host, rank.exit_code)
    yield Measured("lab", None, result.seconds)


def _planned(trouble: Trouble) -> TroublePlanned:
    if isinstance(trouble, Kill):
        return TroublePlanned("kill", "rank", trouble.rank, trouble.at_s)
    if isinstance(trouble, Pause):
        return TroublePlanned("pause", "rank", trouble.rank, trouble.at_s, trouble.for_s)
    if isinstance(trouble, Cut):
        return TroublePlanned("cut", "host", trouble.host, trouble.at_s)
    every_s = trouble.every_s
    return TroublePlanned("pause", "host", trouble.host, every_s, trouble.for_s, every_s)
