"""The stream of events: workers emit, and the event file, the progress bar and tests receive."""

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
from talka.events.base import Measured, PhaseAdvanced, PhaseEnded, PhaseStarted
from talka.events.registry import Event
from talka.guard import Caught, is_signal, logger

Listener = Callable[[Event], None]
ADVANCE_EVERY_S = 0.2  # looks smooth and costs nothing


class Stream:
    """Writes events to `path` (one JSON object per line, one writer per file) and to listeners.

    Without a path, lines are passed to `lines_to` if that is given. Each line is written at once, so a killed run leaves all of
    its events. A full disk or a listener that raises does not stop the work: the problem is logged
    once, and later events are tried again.
    """

    def __init__(
        self, path: Path | None = None, *, lines_to: Callable[[bytes], None] | None = None
    ) -> None:
        self._lines_to = lines_to
        self._lock = threading.Lock()
        self._listeners: list[Listener] = []
        self._file: int | None = None
        self._is_line_torn = False
        self._logged: set[int] = set()
        self.is_locked = False
        """True if the file is locked, so that readers can see that its writer is alive."""
        self.dir = None if path is None else path.parent
        """Run directory, the folder of `path`; None without a path."""
        if path is not None:
            try:
                self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            except OSError as error:
                advice = "Choose a folder that you may write to."
                raise RunDirectoryError(str(path.parent), error.strerror or "", advice) from error
            self.is_locked = _locked(self._file)

    @property
    def is_recorded(self) -> bool:
        """True if events are written somewhere, not only passed to listeners."""
        return self._file is not None or self._lines_to is not None

    def emit(self, event: Event) -> None:
        """Write an event to the file and call all listeners with it."""
        with self._lock:
            if self._file is not None:
                self._write(self._file, line_of(event))
            elif self._lines_to is not None:
                self._lines_to(line_of(event))
            self._deliver(event)

    def append(self, lines: bytes) -> None:
        """Write lines that another process made; they do not reach listeners."""
        with self._lock:
            if self._file is not None:
                self._write(self._file, lines)

    @contextmanager
    def listening(self, listener: Listener) -> Iterator[None]:
        """Call `listener` with each event that is emitted inside the block."""
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
        """Report the progress of a part of the job, and measure it if the block raises no error.

        Parameters
        ----------
        total
            Amount of work, in `unit`; None if it is not known.
        """
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

    def notify_listeners(self, event: Event) -> None:
        """Call all listeners with an event that another writer has written to its own file."""
        with self._lock:
            self._deliver(event)

    def close(self) -> None:
        """Close the file; later events only reach listeners."""
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
                self._log(id(listener), "a listener of events raised %r", caught.error)

    def _log(self, cause: int, message: str, *details: object) -> None:
        """Log a problem the first time only, as later events would repeat it."""
        if cause not in self._logged:
            self._logged.add(cause)
            logger.warning(f"{message}. The work continues.", *details)


class Phase:
    """A part of a job that is in progress."""

    def __init__(self, stream: Stream, cost_id: str) -> None:
        self.sent_bytes: float | None = None
        """Bytes sent so far; None if they are not counted. Set by the user of the phase."""
        self.done = 0.0
        """Amount of work done so far, in the unit of the phase."""
        self.aside_s = 0.0
        """Seconds inside this phase that were measured for other cost ids."""
        self._stream, self._cost_id = stream, cost_id
        self._shown, self._shown_s = 0.0, 0.0

    def advance(self, amount: float = 1) -> None:
        """Add to the work done; emits an event at most every `ADVANCE_EVERY_S` seconds."""
        self.done += amount
        if time.monotonic() - self._shown_s >= ADVANCE_EVERY_S:
            self.show()

    @contextmanager
    def aside(self, cost_id: str) -> Iterator[None]:
        """Measure the block under another cost id instead of this phase's own."""
        start = time.perf_counter()
        yield
        seconds = time.perf_counter() - start
        self.aside_s += seconds
        self._stream.emit(Measured(cost_id, None, seconds))

    def show(self) -> None:
        """Emit the work done so far, unless the last event did."""
        if self.done != self._shown:
            self._shown, self._shown_s = self.done, time.monotonic()
            self._stream.emit(PhaseAdvanced(self._cost_id, self.done))


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False  # a file system without locks
    return True


def line_of(event: Event) -> bytes:
    """Return the line of an event, with the present time."""
    fields: dict[str, Any] = {"event": type(event).__name__, "time_s": time.time()}
    for field in dataclasses.fields(event):
        value = getattr(event, field.name)
        if isinstance(value, float) and not math.isfinite(value):
            value = None  # JSON has neither NaN nor infinity
        fields[field.name] = value
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
