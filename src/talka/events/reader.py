"""Read a run directory back, also one whose run still goes on or was killed.

Files may be damaged or made up: what is read is checked, so that no value of an event is too large
to be added up or drawn, and no text of it cannot be written.
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
MAX_TIME_S: Final = 1e11  # in the year 5138; calendars end later
MAX_INT: Final = 2**63
MAX_FLOAT: Final = 1e100  # sums, means and ratios of such numbers are still finite
_MAX_LINE_BYTES: Final = 1 << 24
_MAX_DEPTH: Final = 50
_FORMER_NAMES: Final = {"part": "cost_id"}
"""Present names of fields that earlier versions wrote."""
_Problem = Literal["cut", "unknown", "damaged"]
"""Why a line is no event: half a line at the end of a file, a newer version's, or anything else."""


class Stamped(NamedTuple):
    """An event, when it was said and by whom (`driver`, `rank-3`)."""

    time_s: float
    source: str
    event: Event


class Comparison(NamedTuple):
    """One part: what was predicted beside what was measured; None where one side is missing."""

    cost_id: str
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
    """Lines that are no event of this version, for whatever reason."""
    num_damaged_lines: int = 0
    """Those among them that no version of talka has written: neither events that are not known
    here, nor half a line at the end of a file, as a killed run leaves it."""
    has_writer: bool = False
    """Whether a living process still writes events."""

    @property
    def status(self) -> Literal["done", "failed", "interrupted", "running", "killed", "ended"]:
        """How the run ended. `ended` is a run without a driver, where nobody says how."""
        for stamped in reversed(self.events):
            if isinstance(stamped.event, RunEnded):
                return stamped.event.status
        if self.has_writer:
            return "running"
        has_driver = any(stamped.source == DRIVER for stamped in self.events) or self.config
        return "killed" if has_driver else "ended"

    def comparisons(self) -> list[Comparison]:
        """Predicted beside measured, in the order in which parts were first named.

        A part's repetitions are added up. Ranks that measured it did so at the same time: their
        bytes are added up, and the slowest one's seconds count.
        """
        return _compare((stamped.source, stamped.event) for stamped in self.events)


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
        raise RunDirectoryError(str(path), "has no line that is an event, so it is no run", advice)
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
            of_sources = measured.setdefault(event.cost_id, {})
            before = of_sources.get(source)
            of_sources[source] = event if before is None else _in_turn(before, event)
    together = {cost_id: _together(cost_id, of.values()) for cost_id, of in measured.items()}
    parts = dict.fromkeys([*predicted, *measured])
    return [Comparison(cost_id, predicted.get(cost_id), together.get(cost_id)) for cost_id in parts]


def _in_turn(first: Measured, second: Measured) -> Measured:
    return Measured(
        first.cost_id,
        _sum([first.sent_bytes, second.sent_bytes]),
        _sum([first.seconds, second.seconds]),
    )


def _together(cost_id: str, measured: Iterable[Measured]) -> Measured:
    """What sources cost that worked side by side."""
    measured = list(measured)
    seconds = [one.seconds for one in measured if one.seconds is not None]
    return Measured(cost_id, _sum([one.sent_bytes for one in measured]), max(seconds, default=None))


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
            found = _parsed(line.decode("utf-8", "replace"), source)
            yield "cut" if found == "damaged" and not is_whole else found


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
    """Give fields of files from earlier versions their present names."""
    for former, name in _FORMER_NAMES.items():
        if former in fields:
            fields.setdefault(name, fields[former])


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _fits(value: Any, kind: Any) -> bool:
    """Whether a field is of its declared type and can be computed with, so readers need not doubt it.

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
    """Text without halves of surrogate pairs, which JSON can carry and no file or terminal takes."""
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
    """Whether values are nested too deeply for code that follows them by calling itself."""
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
