"""Reader of run directories, including those of runs that are not finished or were killed.

Files may be damaged or forged, so every field is checked: numbers are small enough to be summed and
plotted, and texts can be encoded as UTF-8.
"""

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin

from talka.errors import RunDirectoryError
from talka.events.base import EVENTS, Event, Measured, Predicted, RunEnded
from talka.events.liveness import has_living_writer

DRIVER: Final = "driver"
MAX_TIME_S: Final = 1e11  # the year 5138, which calendar functions can still format
MAX_INT: Final = 2**63
MAX_FLOAT: Final = 1e100  # sums, means and ratios of such numbers are still finite
_MAX_LINE_BYTES: Final = 1 << 24
_MAX_DEPTH: Final = 50
_FORMER_NAMES: Final = {"part": "cost_id", "exchange_s": "wait_s"}
"""Current name of each event field that earlier versions wrote under another name."""
_Problem = Literal["cut", "unknown", "damaged"]
"""Why a line is not an event: cut off at the end of a file, written by a newer version, or neither."""


class Stamped(NamedTuple):
    """An event with the time at which it was written and its writer (`driver`, `rank-3`)."""

    time_s: float
    source: str
    event: Event


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
    problems: Counter[_Problem] = Counter()
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


def _read_file(file: Path) -> Iterator["Stamped | _Problem"]:
    source = file.name.removeprefix("events").removesuffix(".jsonl").lstrip(".") or DRIVER
    with file.open("rb") as lines:
        while line := lines.readline(_MAX_LINE_BYTES):
            is_whole = line.endswith(b"\n")
            if not is_whole and len(line) == _MAX_LINE_BYTES:
                while (rest := lines.readline(_MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                    pass
                yield "damaged"
                continue
            parsed = _parsed(line.decode("utf-8", "replace"), source)
            yield "cut" if parsed == "damaged" and not is_whole else parsed


def _parsed(line: str, source: str) -> "Stamped | _Problem":
    try:
        fields = json.loads(line, parse_constant=_refuse)
        kind = EVENTS.get(fields["event"])
        time_s = fields["time_s"]
        if not _fits(time_s, float) or not 0 <= time_s <= MAX_TIME_S:
            return "damaged"
        if kind is None:
            return "unknown"
        _adopt_former_names(fields)
        known = [field for field in dataclasses.fields(kind) if field.name in fields]
        if not all(_fits(fields[field.name], field.type) for field in known):
            return "damaged"
        event = kind(**{field.name: _printable(fields[field.name]) for field in known})
        return Stamped(float(time_s), source, event)
    except (ValueError, LookupError, TypeError, RecursionError):
        return "damaged"


def _adopt_former_names(fields: dict[str, Any]) -> None:
    """Add the current names of fields that earlier versions wrote under other names."""
    for former, name in _FORMER_NAMES.items():
        if former in fields:
            fields.setdefault(name, fields[former])


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _fits(value: Any, kind: Any) -> bool:
    """Return whether a value has the declared type of its field and is safe to compute with.

    >>> _fits(3, float), _fits(None, float), _fits(None, float | None), _fits("3", int)
    (True, False, True, False)
    >>> _fits(10**400, int), _fits(10**400, float), _fits(True, int)
    (False, False, False)
    """
    if get_origin(kind) is Literal:
        return isinstance(value, str) and value in get_args(kind)
    if isinstance(kind, UnionType):
        return any(_fits(value, option) for option in get_args(kind))
    if not isinstance(value, int | float if kind is float else kind) or isinstance(value, bool):
        return False
    return not isinstance(value, int | float) or abs(value) <= (
        MAX_INT if isinstance(value, int) else MAX_FLOAT
    )


def _printable(value: Any) -> Any:
    """Replace lone surrogates in a text: JSON can contain them, but UTF-8 cannot encode them."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_LINE_BYTES).decode("utf-8")
        value = json.loads(text)
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and not _is_deep(value) else None


def _is_deep(value: Any) -> bool:
    """Return whether values are nested too deeply for recursive code."""
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True
