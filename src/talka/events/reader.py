"""Read a run directory back, also one whose run still goes on or was killed."""

import dataclasses
import json
import os
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Literal, NamedTuple, get_args, get_origin

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

        A part's repetitions are added up. Ranks that measured it did so at the same time: their
        bytes are added up, and the slowest one's seconds count.
        """
        return _compare((stamped.source, stamped.event) for stamped in self.events)

    def _writer_lives(self) -> bool:
        if self.config.get("host") != socket.gethostname():
            return True  # on another machine: nobody can tell from here
        try:
            os.kill(int(self.config["pid"]), 0)
        except (ProcessLookupError, KeyError, TypeError, ValueError):
            return False
        except PermissionError:
            return True
        return True


def compare(events: Iterable[Event]) -> list[Comparison]:
    """Predicted beside measured, for events of one writer."""
    return _compare(("driver", event) for event in events)


def read_run(path: Path) -> RunRecord:
    """Read all event files of `path`, merged by time."""
    try:
        return _read(path)
    except OSError as error:
        problem = f"cannot be read ({error.strerror}: {error.filename})"
        raise RunDirectoryError(str(path), problem, "Mend its name or permissions.") from error


def _read(path: Path) -> RunRecord:
    events: list[Stamped] = []
    num_unreadable = 0
    for file in _event_files(path):
        for stamped in _read_file(file):
            if stamped is None:
                num_unreadable += 1
            else:
                events.append(stamped)
    events.sort(key=lambda stamped: stamped.time_s)
    config = _read_json(path / "config.json") or {}
    return RunRecord(path, config, events, _read_json(path / "result.json"), num_unreadable)


def _compare(events: Iterable[tuple[str, Event]]) -> list[Comparison]:
    predicted: dict[str, Predicted] = {}
    measured: dict[str, dict[str, Measured]] = {}
    for source, event in events:
        if isinstance(event, Predicted):
            predicted[event.part] = event
        elif isinstance(event, Measured):
            of_sources = measured.setdefault(event.part, {})
            before = of_sources.get(source)
            of_sources[source] = event if before is None else _in_turn(before, event)
    together = {part: _together(part, of.values()) for part, of in measured.items()}
    parts = dict.fromkeys([*predicted, *measured])
    return [Comparison(part, predicted.get(part), together.get(part)) for part in parts]


def _in_turn(first: Measured, second: Measured) -> Measured:
    return Measured(
        first.part,
        _sum([first.sent_bytes, second.sent_bytes]),
        _sum([first.seconds, second.seconds]),
    )


def _together(part: str, measured: Iterable[Measured]) -> Measured:
    """What sources cost that worked side by side."""
    measured = list(measured)
    seconds = [one.seconds for one in measured if one.seconds is not None]
    return Measured(part, _sum([one.sent_bytes for one in measured]), max(seconds, default=None))


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _event_files(path: Path) -> list[Path]:
    files = sorted(path.glob("events*.jsonl")) if path.is_dir() else []
    if not files:
        problem = "does not exist"
        if path.is_dir():
            problem = "has no events.jsonl, so it is no run"
        elif path.exists():
            problem = "is no folder"
        raise RunDirectoryError(str(path), problem, "Give a folder such as runs/<time>-<name>.")
    return files


def _read_file(file: Path) -> Iterator[Stamped | None]:
    source = file.name.removeprefix("events").removesuffix(".jsonl").lstrip(".") or "driver"
    with file.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            yield _parsed(line, source)


def _parsed(line: str, source: str) -> Stamped | None:
    try:
        fields = json.loads(line)
        kind = EVENTS[fields["event"]]
        known = [field for field in dataclasses.fields(kind) if field.name in fields]
        if not all(_fits(fields[field.name], field.type) for field in known):
            return None
        event = kind(**{field.name: fields[field.name] for field in known})
        return Stamped(float(fields["time_s"]), source, event)
    except (ValueError, KeyError, TypeError):
        return None


def _fits(value: Any, kind: Any) -> bool:
    """Whether a field is of its declared type, so that readers need not doubt it.

    >>> _fits(3, float), _fits(None, float), _fits(None, float | None), _fits("3", int)
    (True, False, True, False)
    """
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if isinstance(kind, UnionType):
        return any(_fits(value, option) for option in get_args(kind))
    return isinstance(value, int | float if kind is float else kind)


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
