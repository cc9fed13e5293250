"""Read a run while it continues: each poll reads only what was written since the last one.

    events.jsonl          offset 5,210 ----+
    events.rank-0.jsonl   offset 3,874 ----+--> whole lines --> events, by time --> record
    events.rank-1.jsonl   new: offset 0 ---+

Events of one poll are in order of time. An event that reaches its file late, because a worker sent it
in a batch or because a file system delayed it, comes in a later poll, after younger events of other
writers; it is not sorted into earlier ones. The order of one writer is always kept.
"""

import json
import os
import stat
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from talka.errors import RunDirectoryError
from talka.events.fields import is_deep
from talka.events.liveness import has_living_writer, open_to_read
from talka.events.parsing import MAX_LINE_BYTES, Problem, Stamped, parsed
from talka.events.record import DRIVER, Fold, RunRecord, RunStatus

_CHUNK_BYTES: Final = 1 << 20
_NUM_BEFORE_BYTES: Final = 64  # holds the time of an event, so another file has other bytes there
_ADVICE: Final = "Give a folder such as runs/<time>-<name>."


def follow(
    run_dir: Path, *, folds: Iterable[type[Fold]] = (), keep_events: bool = True
) -> "Follower":
    """Return a reader of a run that may still be running; its folder may have no events yet.

    `folds` and `keep_events` are those of `RunRecord`.

    Raises RunDirectoryError if `run_dir` is not a folder.
    """
    _check_folder(run_dir)
    return Follower(run_dir, folds=folds, keep_events=keep_events)


def read_run(path: Path) -> RunRecord:
    """Read a run directory; the events of all its files are merged by time.

    Raises RunDirectoryError if `path` is not a run directory or cannot be read.
    """
    follower = follow(path)
    follower.poll()
    if not follower.num_files:
        raise RunDirectoryError(str(path), "has no events.jsonl, so it is not a run", _ADVICE)
    follower.finish()
    record = follower.record
    if record.num_unreadable_lines and not record.events:
        problem = "has no line that is an event, so it is not a run"
        raise RunDirectoryError(str(path), problem, _ADVICE)
    return record


class Follower:
    """Reads a run directory piece by piece; `follow` makes one.

    A file that was truncated or replaced by another is noted in `restarts`. The record then starts
    from nothing, and the same call of `poll` returns all events of the run again.
    """

    def __init__(
        self, run_dir: Path, *, folds: Iterable[type[Fold]] = (), keep_events: bool = True
    ) -> None:
        self.dir = run_dir
        self.restarts: list[str] = []
        """Why the run was read again from the start, once for each time."""
        self._folds, self._keep_events = tuple(folds), keep_events
        self._reset()

    @property
    def record(self) -> RunRecord:
        """All that the polls have read. After a restart this is another object."""
        return self._record

    @property
    def status(self) -> RunStatus:
        """Status of the run at the last poll."""
        return self._record.status

    @property
    def num_files(self) -> int:
        """Number of event files that have been found."""
        return len(self._tails)

    def poll(self) -> list[Stamped]:
        """Return the events that were written since the last call, in order of time.

        The last line of a file waits until it is whole.

        Raises RunDirectoryError if a file cannot be read.
        """
        try:
            try:
                return self._poll()
            except _ReplacedError as replaced:
                self.restarts.append(f"{replaced.name} was truncated or replaced")
                self._reset()
                return self._poll()
        except OSError as error:
            raise _unreadable(self.dir, error) from error

    def batches(self, *, every_s: float = 0.5) -> Iterator[list[Stamped]]:
        """Poll every `every_s` seconds and yield new events, until the run is over and read."""
        while True:
            events = self.poll()
            if events:
                yield events
            elif self.status != "running":
                return
            time.sleep(every_s)

    def finish(self) -> None:
        """Count last lines that are not whole, as no more will be written."""
        events: list[Stamped] = []
        problems: Counter[Problem] = Counter()
        for tail in self._tails.values():
            tail.finish(events, problems)
        self._take(events, problems)
        self._record.events.sort(key=_time)

    def _reset(self) -> None:
        self._tails: dict[str, _Tail] = {}
        self._record = RunRecord(self.dir, folds=self._folds, keep_events=self._keep_events)

    def _poll(self) -> list[Stamped]:
        record = self._record
        files = sorted(self.dir.glob("events*.jsonl"))
        record.config = record.config or _read_json(self.dir / "config.json") or {}
        # before reading: what a writer that is gone wrote is in the files already
        record.has_writer = has_living_writer(files, record.config)
        record.result = record.result or _read_json(self.dir / "result.json")
        events: list[Stamped] = []
        problems: Counter[Problem] = Counter()
        for file in files:
            tail = self._tails.get(file.name)
            if tail is None:
                tail = self._tails[file.name] = _Tail(file)
            tail.read(events, problems)
        events.sort(key=_time)
        self._take(events, problems)
        return events

    def _take(self, events: list[Stamped], problems: Counter[Problem]) -> None:
        self._record.num_unreadable_lines += problems.total()
        self._record.num_damaged_lines += problems["damaged"]
        self._record.update(events)


class _ReplacedError(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class _Tail:
    """The place in one event file up to which it has been read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        name = path.name.removeprefix("events").removesuffix(".jsonl").lstrip(".")
        self._source = name or DRIVER
        self._offset = 0
        self._before = b""  # the last bytes before the offset
        self._rest = bytearray()  # the beginning of a line that is not whole yet
        self._is_skipping = False  # inside a line that is too long

    def read(self, events: list[Stamped], problems: Counter[Problem]) -> None:
        """Add the events of the lines that have become whole, and count the other lines."""
        file = open_to_read(self._path)
        try:
            size = os.fstat(file).st_size
            before = os.pread(file, len(self._before), self._offset - len(self._before))
            if size < self._offset or before != self._before:
                raise _ReplacedError(self._path.name)
            # not beyond this size, or a fast writer (or a link to /dev/zero) would never let it end
            while chunk := os.pread(file, min(_CHUNK_BYTES, size - self._offset), self._offset):
                self._offset += len(chunk)
                self._before = (self._before + chunk)[-_NUM_BEFORE_BYTES:]
                for line in self._lines(chunk):
                    self._add(line, events, problems)
                if len(self._rest) >= MAX_LINE_BYTES:
                    problems["damaged"] += not self._is_skipping
                    self._is_skipping = True
                if self._is_skipping:
                    self._rest.clear()
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from error
        finally:
            os.close(file)

    def finish(self, events: list[Stamped], problems: Counter[Problem]) -> None:
        """Read the last line, which may be whole without its end."""
        if self._rest:
            content = parsed(bytes(self._rest), self._source)
            self._rest.clear()
            if isinstance(content, Stamped):
                events.append(content)
            else:
                problems["cut"] += 1

    def _lines(self, chunk: bytes) -> list[bytes]:
        """Return the whole lines up to the end of a chunk."""
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = bytes(self._rest) + lines[0]
            self._rest.clear()
            if self._is_skipping:
                del lines[0]
                self._is_skipping = False
        self._rest += rest
        return lines

    def _add(self, line: bytes, events: list[Stamped], problems: Counter[Problem]) -> None:
        content = "damaged" if len(line) >= MAX_LINE_BYTES else parsed(line, self._source)
        if isinstance(content, Stamped):
            events.append(content)
        else:
            problems["damaged"] += 1


def _time(stamped: Stamped) -> float:
    return stamped.time_s


def _check_folder(path: Path) -> None:
    try:
        problem = "" if stat.S_ISDIR(path.stat().st_mode) else "is not a folder"
    except FileNotFoundError:
        problem = "does not exist"
    except OSError as error:
        raise _unreadable(path, error) from error
    if problem:
        raise RunDirectoryError(str(path), problem, _ADVICE)


def _unreadable(path: Path, error: OSError) -> RunDirectoryError:
    problem = f"cannot be read ({error.strerror}: {error.filename})"
    return RunDirectoryError(str(path), problem, "Correct the path or its permissions.")


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        with os.fdopen(open_to_read(path), "rb") as file:
            text = file.read(MAX_LINE_BYTES).decode("utf-8")
        value = json.loads(text)
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and not is_deep(value) else None
