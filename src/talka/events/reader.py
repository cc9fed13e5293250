"""Reader of run directories, including those of runs that are not finished or were killed."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from talka.errors import RunDirectoryError
from talka.events.base import Measured, Predicted, RunEnded
from talka.events.fields import is_deep
from talka.events.liveness import has_living_writer
from talka.events.parsing import MAX_LINE_BYTES, Problem, Stamped, parsed
from talka.events.registry import Event

DRIVER: Final = "driver"


class Comparison(NamedTuple):
    """Predicted and measured cost of one part of a job; None if one of them is missing."""

    cost_id: str
    predicted: Predicted | None
    measured: Measured | None


@dataclass(frozen=True)
class RunRecord:
    """Contents of a run directory."""

    dir: Path
    config: dict[str, Any]
    """Content of `config.json`; empty if it is missing or damaged."""
    events: list[Stamped]
    """Events of all writers, in order of time."""
    result: dict[str, Any] | None
    """Content of `result.json`; None if the run did not finish."""
    num_unreadable_lines: int
    """Number of lines that are not an event of this version, for any reason."""
    num_damaged_lines: int = 0
    """Number of unreadable lines that are damaged: neither an event of a newer version nor a line cut
    off at the end of a file, which a killed run leaves."""
    has_writer: bool = False
    """True if a live process is still writing events."""

    @property
    def status(self) -> Literal["done", "failed", "interrupted", "running", "killed", "ended"]:
        """Status of the run: how it ended, or `running`.

        `ended` is for runs without a driver, which record no status.
        """
        for stamped in reversed(self.events):
            if isinstance(stamped.event, RunEnded):
                return stamped.event.status
        if self.has_writer:
            return "running"
        has_driver = any(stamped.source == DRIVER for stamped in self.events) or self.config
        return "killed" if has_driver else "ended"

    def comparisons(self) -> list[Comparison]:
        """Return predicted and measured costs by cost id, in the order in which ids first appear.

        Repeated measurements of a writer are summed. Ranks work at the same time: their bytes are
        summed, and the seconds are those of the slowest rank.
        """
        return _compare((stamped.source, stamped.event) for stamped in self.events)


def compare(events: Iterable[Event]) -> list[Comparison]:
    """Return predicted and measured costs by cost id, for events of one writer."""
    return _compare(("driver", event) for event in events)


def read_run(path: Path) -> RunRecord:
    """Read a run directory; the events of all its files are merged by time.

    Raises RunDirectoryError if `path` is not a run directory or cannot be read.
    """
    try:
        return _read(path)
    except OSError as error:
        problem = f"cannot be read ({error.strerror}: {error.filename})"
        raise RunDirectoryError(
            str(path), problem, "Correct the path or its permissions."
        ) from error


def _read(path: Path) -> RunRecord:
    files = _event_files(path)
    events: list[Stamped] = []
    problems: Counter[Problem] = Counter()
    for file in files:
        for line in _read_file(file):
            if isinstance(line, Stamped):
                events.append(line)
            else:
                problems[line] += 1
    if problems and not events:
        advice = "Give a folder such as runs/<time>-<name>."
        raise RunDirectoryError(
            str(path), "has no line that is an event, so it is not a run", advice
        )
    events.sort(key=lambda stamped: stamped.time_s)
    config = _read_json(path / "config.json") or {}
    return RunRecord(
        path,
        config,
        events,
        _read_json(path / "result.json"),
        num_unreadable_lines=problems.total(),
        num_damaged_lines=problems["damaged"],
        has_writer=has_living_writer(files, config),
    )


def _compare(events: Iterable[tuple[str, Event]]) -> list[Comparison]:
    predicted: dict[str, Predicted] = {}
    measured: dict[str, dict[str, Measured]] = {}
    for source, event in events:
        if isinstance(event, Predicted):
            predicted[event.cost_id] = event
        elif isinstance(event, Measured):
            by_source = measured.setdefault(event.cost_id, {})
            before = by_source.get(source)
            by_source[source] = event if before is None else _sequential(before, event)
    totals = {
        cost_id: _concurrent(cost_id, by_source.values()) for cost_id, by_source in measured.items()
    }
    return [
        Comparison(cost_id, predicted.get(cost_id), totals.get(cost_id))
        for cost_id in dict.fromkeys([*predicted, *measured])
    ]


def _sequential(first: Measured, second: Measured) -> Measured:
    """Return the cost of two measurements of one writer."""
    return Measured(
        first.cost_id,
        _sum([first.sent_bytes, second.sent_bytes]),
        _sum([first.seconds, second.seconds]),
    )


def _concurrent(cost_id: str, measured: Iterable[Measured]) -> Measured:
    """Return the cost of a part that several writers measured at the same time."""
    measured = list(measured)
    seconds = [cost.seconds for cost in measured if cost.seconds is not None]
    sent_bytes = _sum([cost.sent_bytes for cost in measured])
    return Measured(cost_id, sent_bytes, max(seconds, default=None))


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _event_files(path: Path) -> list[Path]:
    files = sorted(path.glob("events*.jsonl")) if path.is_dir() else []
    if not files:
        problem = "does not exist"
        if path.is_dir():
            problem = "has no events.jsonl, so it is not a run"
        elif path.exists():
            problem = "is not a folder"
        raise RunDirectoryError(str(path), problem, "Give a folder such as runs/<time>-<name>.")
    return files


def _read_file(file: Path) -> Iterator[Stamped | Problem]:
    source = file.name.removeprefix("events").removesuffix(".jsonl").lstrip(".") or DRIVER
    with file.open("rb") as lines:
        while line := lines.readline(MAX_LINE_BYTES):
            is_whole = line.endswith(b"\n")
            if not is_whole and len(line) == MAX_LINE_BYTES:
                while (rest := lines.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                    pass
                yield "damaged"
                continue
            content = parsed(line, source)
            yield "cut" if content == "damaged" and not is_whole else content


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        with path.open("rb") as file:
            text = file.read(MAX_LINE_BYTES).decode("utf-8")
        value = json.loads(text)
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and not is_deep(value) else None
