"""The head of the page: status, totals, configuration and result of the run."""

import shlex
import time
from typing import Any, ClassVar

from talka.engine.events import RankLost, Spilled, TaskAgain, TasksRan, WorkerLost
from talka.events import Event, RunRecord, Stamped
from talka.events.costs import Costs
from talka.report.base import PageSection, ReportSection, span_of
from talka.report.markup import escaped, facts
from talka.units import format_bytes, format_count, format_seconds


class Totals:
    """Totals over all workers of a run."""

    KINDS: ClassVar[tuple[type[Event], ...]] = (TasksRan, TaskAgain, Spilled, WorkerLost, RankLost)

    def __init__(self) -> None:
        self.num_tasks = 0
        self.num_tasks_again = 0
        self.spilled_bytes = 0
        self.num_workers_lost = 0

    def add(self, stamped: Stamped) -> None:
        """Add an event."""
        event = stamped.event
        if isinstance(event, TasksRan):
            self.num_tasks += event.count
        elif isinstance(event, Spilled):
            self.spilled_bytes += event.num_bytes
        elif isinstance(event, TaskAgain):
            self.num_tasks_again += 1
        else:
            self.num_workers_lost += 1


def summary_section(record: RunRecord) -> ReportSection:
    """Build the summary; its title is the name of the run."""
    name = str(record.config.get("name") or record.dir.resolve().name)
    tables = [facts("Asked for", _mapping(record.config.get("config")), rest_in="config.json")]
    if record.result is not None:
        tables.append(facts("Result", record.result, rest_in="result.json"))
    tables.append(facts("Ran on", _environment(record), rest_in="config.json"))
    body = _head(record) + _tiles(record) + f'<div class="grid">{"".join(tables)}</div>'
    return ReportSection(name, body)


SUMMARY = PageSection(summary_section, (Totals, Costs))


def _sent_bytes(record: RunRecord) -> float:
    """Add up measured bytes, skipping ids inside another: `stage/2` includes `stage/2/exchange`."""
    sent = {
        comparison.cost_id: comparison.measured.sent_bytes
        for comparison in record.comparisons()
        if comparison.measured is not None and comparison.measured.sent_bytes is not None
    }
    return sum(
        num_bytes for cost_id, num_bytes in sent.items() if sent.keys().isdisjoint(_above(cost_id))
    )


def _above(cost_id: str) -> list[str]:
    """Return the cost ids that contain this one.

    >>> _above("stage/2/exchange")
    ['stage', 'stage/2']
    """
    names = cost_id.split("/")
    return ["/".join(names[:depth]) for depth in range(1, len(names))]


def _head(record: RunRecord) -> str:
    span = span_of(record)
    started = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(span.start_s))
    is_over = record.status in ("done", "failed", "interrupted")
    lasted = f"{format_seconds(span.seconds)}{'' if is_over else ' up to its last event'}"
    host = record.config.get("host", "an unknown host")
    return (
        f'<p class="head"><span class="badge {record.status}">{record.status}</span> '
        f"{escaped(started)} · {escaped(lasted)} · {escaped(host)}</p>"
        f'<p class="command"><code>{escaped(_command(record))}</code></p>'
    )


def _command(record: RunRecord) -> str:
    words = record.config.get("command")
    return shlex.join(map(str, words)) if isinstance(words, list) else ""


def _tiles(record: RunRecord) -> str:
    totals = record.fold(Totals)
    tiles = {
        "sent": format_bytes(_sent_bytes(record)),
        "tasks run": format_count(totals.num_tasks),
        "tasks run again": format_count(totals.num_tasks_again),
        "spilled to disk": format_bytes(totals.spilled_bytes),
        "workers lost": format_count(totals.num_workers_lost),
    }
    inner = "".join(f"<div><dd>{value}</dd><dt>{name}</dt></div>" for name, value in tiles.items())
    return f'<dl class="tiles">{inner}</dl>'


def _environment(record: RunRecord) -> dict[str, Any]:
    known = {
        "host": record.config.get("host"),
        "cores": record.config.get("num_cores"),
        "python": record.config.get("python"),
        **_mapping(record.config.get("versions")),
    }
    return {name: value for name, value in known.items() if value is not None}


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
