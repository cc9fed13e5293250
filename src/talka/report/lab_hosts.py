"""The hosts of a lab: their links and quotas, their traffic, and the troubles of the run."""

from typing import ClassVar

from talka.events import Event, RunRecord, Stamped
from talka.lab.events import HostCounted, HostJoined, RankExited, TroublePlanned
from talka.report.base import PageSection, ReportSection
from talka.report.markup import MAX_TABLE_ROWS, Column, escaped, note, table
from talka.units import format_bytes, format_rate, format_seconds

_COLUMNS = (
    Column("host", "number"),
    Column("address"),
    Column("rate", "number"),
    Column("cores", "number"),
    Column("sent", "number"),
    Column("received", "number"),
    Column("exit codes of its ranks", "long"),
)


class LabHosts:
    """Hosts, traffic, exit codes and troubles of a run, of which one driver writes each once."""

    KINDS: ClassVar[tuple[type[Event], ...]] = (
        HostJoined,
        TroublePlanned,
        HostCounted,
        RankExited,
    )

    def __init__(self) -> None:
        self.hosts: dict[int, HostJoined] = {}
        self.traffic: dict[int, HostCounted] = {}
        self.exits: dict[int, RankExited] = {}
        """Ends of ranks, by rank."""
        self.troubles: list[TroublePlanned] = []

    def add(self, stamped: Stamped) -> None:
        """Add an event."""
        event = stamped.event
        if isinstance(event, HostJoined):
            self.hosts[event.host] = event
        elif isinstance(event, HostCounted):
            self.traffic[event.host] = event
        elif isinstance(event, RankExited):
            self.exits[event.rank] = event
        elif isinstance(event, TroublePlanned):
            self.troubles.append(event)


def lab_section(record: RunRecord) -> ReportSection | None:
    """Build the table of hosts; None for a run outside of a lab."""
    lab = record.fold(LabHosts)
    if not lab.hosts:
        return None
    hosts = [lab.hosts[host] for host in sorted(lab.hosts)]
    codes: dict[int, list[str]] = {}
    for _, end in sorted(lab.exits.items()):
        codes.setdefault(end.host, []).append(str(end.exit_code))
    rows = [
        _row(host, lab.traffic.get(host.host), codes.get(host.host, []))
        for host in hosts[:MAX_TABLE_ROWS]
    ]
    num_left = len(hosts) - MAX_TABLE_ROWS
    rest = note(f"{num_left} more hosts") if num_left > 0 else ""
    troubles = "".join(f"<li>{escaped(_described(trouble))}</li>" for trouble in lab.troubles)
    listed = f"<h3>Troubles</h3><ul>{troubles}</ul>" if troubles else ""
    return ReportSection("Lab", note(_network(hosts[0])) + table(_COLUMNS, rows) + rest + listed)


LAB_HOSTS = PageSection(lab_section, (LabHosts,), pillar="lab")


def _network(host: HostJoined) -> str:
    if not host.latency_s:
        return "Rates are those of links in each direction; bytes include all headers."
    latency = format_seconds(host.latency_s)
    return f"Rates are those of links in each direction; a packet takes {latency} to another host."


def _row(host: HostJoined, traffic: HostCounted | None, codes: list[str]) -> list[str]:
    return [
        str(host.host),
        f"<code>{escaped(host.address)}</code>",
        format_rate(host.rate_bits_per_s),
        "all" if host.cores is None else f"{host.cores:g}",
        "" if traffic is None else format_bytes(traffic.sent_bytes),
        "" if traffic is None else format_bytes(traffic.received_bytes),
        escaped(" ".join(codes)),
    ]


def _described(trouble: TroublePlanned) -> str:
    """Describe a trouble in words.

    >>> _described(TroublePlanned("cut", "host", 2, 30.0))
    'after 30 s: cut the link of host 2'
    >>> _described(TroublePlanned("pause", "host", 3, 10.0, 0.5, 10.0))
    'every 10 s: pause host 3 for 500 ms'
    """
    when = f"after {format_seconds(trouble.at_s)}"
    if trouble.every_s is not None:
        when = f"every {format_seconds(trouble.every_s)}"
    link = "the link of " if trouble.kind == "cut" else ""
    lasting = "" if trouble.for_s is None else f" for {format_seconds(trouble.for_s)}"
    return f"{when}: {trouble.kind} {link}{trouble.target} {trouble.number}{lasting}"
