"""One stream: whoever works emits; the file, the progress bar and tests listen."""

import dataclasses
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

Listener = Callable[[Event], None]
ADVANCE_EVERY_S = 0.2  # often enough for an eye, rare enough to cost nothing


class Stream:
    """Events go to `path` (one JSON object a line, one writer per file) and to all listeners.

    Without a path nothing is written. Every line reaches the file with its own write, so a run
    that is killed leaves all that it said.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._listeners: list[Listener] = []
        self._file: int | None = None
        self.dir = None if path is None else path.parent
        """The run directory, if there is one."""
        if path is not None:
            try:
                self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            except OSError as error:
                advice = "Choose a folder that you may write to."
                raise RunDirectoryError(str(path.parent), error.strerror or "", advice) from error

    def emit(self, event: Event) -> None:
        with self._lock:
            if self._file is not None:
                os.write(self._file, _line(event))
            for listener in self._listeners:
                listener(event)

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
    def phase(self, part: str, *, total: float | None = None, unit: str = "") -> Iterator["Phase"]:
        """Show a part of the job as it goes on, and measure it."""
        phase = Phase(self, part)
        self.emit(PhaseStarted(part, total, unit))
        start = time.perf_counter()
        try:
            yield phase
        finally:
            phase.show()
            self.emit(PhaseEnded(part))
        seconds = time.perf_counter() - start - phase.aside_s
        self.emit(Measured(part, phase.sent_bytes, seconds))

    def tell(self, event: Event) -> None:
        """Show an event to listeners that another writer has in its own file."""
        with self._lock:
            for listener in self._listeners:
                listener(event)

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None


class Phase:
    """A part of a job that is going on: say how far it is and what it sent."""

    def __init__(self, stream: Stream, part: str) -> None:
        self.sent_bytes: float | None = None
        self.done = 0.0
        self.aside_s = 0.0
        self._stream, self._part = stream, part
        self._shown, self._shown_s = 0.0, 0.0

    def advance(self, amount: float = 1) -> None:
        self.done += amount
        if time.monotonic() - self._shown_s >= ADVANCE_EVERY_S:
            self.show()

    @contextmanager
    def aside(self, part: str) -> Iterator[None]:
        """Time inside of this phase that belongs to another part: measured there, not here."""
        start = time.perf_counter()
        yield
        seconds = time.perf_counter() - start
        self.aside_s += seconds
        self._stream.emit(Measured(part, None, seconds))

    def show(self) -> None:
        """Say how far it is, unless that was said already."""
        if self.done != self._shown:
            self._shown, self._shown_s = self.done, time.monotonic()
            self._stream.emit(PhaseAdvanced(self._part, self.done))


def _line(event: Event) -> bytes:
    fields: dict[str, Any] = {"event": type(event).__name__, "time_s": time.time()}
    for field in dataclasses.fields(event):
        value = getattr(event, field.name)
        if isinstance(value, float) and not math.isfinite(value):
            value = None  # JSON knows no NaN and no infinity
        fields[field.name] = value
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
