"""Read a run directory back, also one whose run still goes on or was killed."""

import dataclasses
import json
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from talka.errors import RunDirectoryError
from talka.events.base import EVENTS, Event, Measured, Predicted, RunEnded


class Stamped(NamedTuple):
    """An event, when it was said and by whom (`driver`, `rank-3`)."""

    time_s: float
    source: str
    event: Event


class Comparison(NamedTuple):
    """One part: what was predicted beside what was measured; None where one side is missing."""

    part: str
    predicted: Predicted | None
    measured: Measured | None


@dataclass(frozen=True)
class RunRecord:
    """All that a run directory says."""

    dir: Path
    config: dict[str, Any]
    events: list[Stamped]
    """Of all writers, in order of time."""
    result: dict[str, Any] | None
    num_unreadable_lines: int
    """Half a line at the end of a killed run, or an event of a newer version."""

    @property
    def status(self) -> Literal["done", "failed", "interrupted", "running", "killed"]:
        for stamped in reversed(self.events):
            if isinstance(stamped.event, RunEnded):
                return stamped.event.status
        return "running" if self._writer_lives() else "killed"

    def comparisons(self) -> list[Comparison]:
        """Predicted beside measured, in the order in which parts were first named.

        Measurements of the same part (one per rank or per repetition) are added up.
        """
        return compare([stamped.event for stamped in self.events])

    def _writer_lives(self) -> bool:
        if self.config.get("host") != socket.gethostname():
            return True  # on another machine: nobody can tell from here
        try:
            os.kill(int(self.config["pid"]), 0)
        except (ProcessLookupError, KeyError):
            return False
        except PermissionError:
            return True
        return True


def compare(events: list[Event]) -> list[Comparison]:
    predicted: dict[str, Predicted] = {}
    measured: dict[str, Measured] = {}
    for event in events:
        if isinstance(event, Predicted):
            predicted[event.part] = event
        elif isinstance(event, Measured):
            known = measured.get(event.part)
            measured[event.part] = event if known is None else _added(known, event)
    parts = dict.fromkeys([*predicted, *measured])
    return [Comparison(part, predicted.get(part), measured.get(part)) for part in parts]


def read_run(path: Path) -> RunRecord:
    """Read all event files of `path`, merged by time."""
    files = sorted(path.glob("events*.jsonl")) if path.is_dir() else []
    if not files:
        problem = "has no events.jsonl, so it is no run" if path.is_dir() else "does not exist"
        raise RunDirectoryError(str(path), problem, "Give a folder such as runs/<time>-<name>.")
    events: list[Stamped] = []
    num_unreadable = 0
    for file in files:
        for stamped in _read_file(file):
            if stamped is None:
                num_unreadable += 1
            else:
                events.append(stamped)
    events.sort(key=lambda stamped: stamped.time_s)
    config = _read_json(path / "config.json") or {}
    return RunRecord(path, config, events, _read_json(path / "result.json"), num_unreadable)


def _added(first: Measured, second: Measured) -> Measured:
    def add(a: float | None, b: float | None) -> float | None:
        return b if a is None else a if b is None else a + b

    return Measured(
        first.part, add(first.sent_bytes, second.sent_bytes), add(first.seconds, second.seconds)
    )


def _read_file(file: Path) -> Iterator[Stamped | None]:
    source = file.name.removeprefix("events").removesuffix(".jsonl").lstrip(".") or "driver"
    with file.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            yield _parsed(line, source)


def _parsed(line: str, source: str) -> Stamped | None:
    try:
        fields = json.loads(line)
        kind = EVENTS[fields["event"]]
        names = [field.name for field in dataclasses.fields(kind)]
        return Stamped(
            float(fields["time_s"]), source, kind(**{name: fields[name] for name in names})
        )
    except (ValueError, KeyError, TypeError):
        return None


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
