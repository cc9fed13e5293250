"""One stream: whoever works emits; the file, the progress bar and tests listen."""

import dataclasses
import fcntl
import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from talka.errors import RunDirectoryError
from talka.events.base import Event, Measured, PhaseAdvanced, PhaseEnded, PhaseStarted
from talka.guard import Caught, is_signal, logger

Listener = Callable[[Event], None]
ADVANCE_EVERY_S = 0.2  # often enough for an eye, rare enough to cost nothing


class Stream:
    """Events go to `path` (one JSON object a line, one writer per file) and to all listeners.

    Without a path nothing is written. Every line reaches the file with its own write, so a run
    that is killed leaves all of its events. A full disk or a listener that raises does not stop
    the work whose events these are: either is logged once, and later events are still tried.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._listeners: list[Listener] = []
        self._file: int | None = None
        self._is_line_torn = False
        self._logged: set[int] = set()
        self.is_locked = False
        """Whether readers can tell by a lock on the file that its writer lives."""
        self.dir = None if path is None else path.parent
        """The run directory, if there is one."""
        if path is not None:
            try:
                self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            except OSError as error:
                advice = "Choose a folder that you may write to."
                raise RunDirectoryError(str(path.parent), error.strerror or "", advice) from error
            self.is_locked = _locked(self._file)

    def emit(self, event: Event) -> None:
        with self._lock:
            if self._file is not None:
                self._write(self._file, _line(event))
            self._deliver(event)

    @contextmanager
    def listening(self, listener: Listener) -> Iterator[None]:
        with self._lock:
            self._listeners.append(listener)
        try:
            yield
        finally:
            with self._lock:
                self._listeners.remove(listener)

    @contextmanager
    def phase(
        self, cost_id: str, *, total: float | None = None, unit: str = ""
    ) -> Iterator["Phase"]:
        """Show a part of the job as it goes on, and measure it."""
        phase = Phase(self, cost_id)
        self.emit(PhaseStarted(cost_id, total, unit))
        start = time.perf_counter()
        try:
            yield phase
        finally:
            phase.show()
            self.emit(PhaseEnded(cost_id))
        seconds = time.perf_counter() - start - phase.aside_s
        self.emit(Measured(cost_id, phase.sent_bytes, seconds))

    def tell(self, event: Event) -> None:
        """Show an event to listeners that another writer has in its own file."""
        with self._lock:
            self._deliver(event)

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def _write(self, file: int, line: bytes) -> None:
        rest = b"\n" + line if self._is_line_torn else line
        num_bytes = len(rest)
        try:
            while rest:
                rest = rest[os.write(file, rest) :]
            self._is_line_torn = False
        except OSError as error:
            self._is_line_torn = self._is_line_torn or len(rest) < num_bytes
            self._log(0, "events cannot be written to %s: %s", self.dir, error.strerror)

    def _deliver(self, event: Event) -> None:
        for listener in tuple(self._listeners):
            with Caught() as caught:
                listener(event)
            if caught.error is not None:
                if is_signal(caught.error):
                    raise caught.error
                self._log(id(listener), "a listener failed at an event: %r", caught.error)

    def _log(self, cause: int, message: str, *details: object) -> None:
        """Log a problem the first time; the next event would repeat it."""
        if cause not in self._logged:
            self._logged.add(cause)
            logger.warning(f"{message}. The work continues.", *details)


class Phase:
    """A part of a job that is going on: say how far it is and what it sent."""

    def __init__(self, stream: Stream, cost_id: str) -> None:
        self.sent_bytes: float | None = None
        self.done = 0.0
        self.aside_s = 0.0
        self._stream, self._cost_id = stream, cost_id
        self._shown, self._shown_s = 0.0, 0.0

    def advance(self, amount: float = 1) -> None:
        self.done += amount
        if time.monotonic() - self._shown_s >= ADVANCE_EVERY_S:
            self.show()

    @contextmanager
    def aside(self, cost_id: str) -> Iterator[None]:
        """Time inside of this phase that belongs to another part: measured there, not here."""
        start = time.perf_counter()
        yield
        seconds = time.perf_counter() - start
        self.aside_s += seconds
        self._stream.emit(Measured(cost_id, None, seconds))

    def show(self) -> None:
        """Say how far it is, unless that was said already."""
        if self.done != self._shown:
            self._shown, self._shown_s = self.done, time.monotonic()
            self._stream.emit(PhaseAdvanced(self._cost_id, self.done))


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False  # a file system without locks
    return True


def _line(event: Event) -> bytes:
    fields: dict[str, Any] = {"event": type(event).__name__, "time_s": time.time()}
    for field in dataclasses.fields(event):
        value = getattr(event, field.name)
        if isinstance(value, float) and not math.isfinite(value):
            value = None  # JSON knows no NaN and no infinity
        fields[field.name] = value
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
