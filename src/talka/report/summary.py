"""The head of the page: status, totals, configuration and result of the run."""

import shlex
import time
from typing import Any, NamedTuple

from talka.engine.events import Spilled, TaskAgain, TasksRan, WorkerLost
from talka.events import RunRecord
from talka.report.base import ReportSection, span_of
from talka.report.markup import escaped, facts
from talka.units import format_bytes, format_count, format_seconds


class Totals(NamedTuple):
    """Totals over all workers of a run."""

    sent_bytes: float
    num_tasks: int
    num_tasks_again: int
    spilled_bytes: int
    num_workers_lost: int


def summary_section(record: RunRecord) -> ReportSection:
    """Build the summary; its title is the name of the run."""
    name = str(record.config.get("name") or record.dir.resolve().name)
    tables = [facts("Asked for", _mapping(record.config.get("config")), rest_in="config.json")]
    if record.result is not None:
        tables.append(facts("Result", record.result, rest_in="result.json"))
    tables.append(facts("Ran on", _environment(record), rest_in="config.json"))
    body = _head(record) + _tiles(totals_of(record)) + f'<div class="grid">{"".join(tables)}</div>'
    return ReportSection(name, body)


def totals_of(record: RunRecord) -> Totals:
    """Add up the totals from the events of a run."""
    events = [stamped.event for stamped in record.events]
    return Totals(
        sent_bytes=_sent_bytes(record),
        num_tasks=sum(event.count for event in events if isinstance(event, TasksRan)),
        num_tasks_again=sum(isinstance(event, TaskAgain) for event in events),
        spilled_bytes=sum(event.num_bytes for event in events if isinstance(event, Spilled)),
        num_workers_lost=sum(isinstance(event, WorkerLost) for event in events),
    )


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


def _tiles(totals: Totals) -> str:
    tiles = {
        "sent": format_bytes(totals.sent_bytes),
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
