"""Batches of task events: many short tasks of one name on one worker become one event.

A task costs a few comparisons. Each worker writes at most one event per `STRETCH_S` seconds, unless
the name changes or the worker becomes idle.
"""

from talka.engine.events import TasksRan
from talka.events import Stream
from talka.guard import Logged

STRETCH_S = 0.1


class TaskMeter:
    """Counts the tasks of one worker. Used by one thread only."""

    __slots__ = ("_busy_s", "_bytes", "_count", "_end_s", "_name", "_start_s", "_stream", "_worker")

    def __init__(self, worker: str, stream: Stream) -> None:
        self._worker, self._stream = worker, stream
        self._name = ""
        self._count = 0
        self._start_s = self._end_s = self._busy_s = 0.0
        self._bytes = 0

    def add(self, name: str, start_s: float, end_s: float, num_bytes: int) -> None:
        """Count one task that ran from `start_s` to `end_s` (seconds since 1970)."""
        if self._count and (name != self._name or end_s - self._start_s > STRETCH_S):
            self.flush()
        if self._count == 0:
            self._name, self._start_s = name, start_s
        self._count += 1
        self._end_s = end_s
        self._busy_s += end_s - start_s
        self._bytes += num_bytes

    def flush(self) -> None:
        """Emit an event for the tasks counted so far. Also called when the worker becomes idle."""
        if self._count:
            ran = (self._count, self._start_s, self._end_s, self._busy_s, self._bytes)
            self._count, self._busy_s, self._bytes = 0, 0.0, 0
            with Logged("emit an event"):
                self._stream.emit(TasksRan(self._name, self._worker, *ran))
