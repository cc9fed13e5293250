"""One thread that runs all exchanges of a worker, first in, first out.

An exchange is written as a generator: it encodes, posts sends and receives, and yields the messages
that it waits for. Before the thread waits for the oldest exchange, it starts new ones, so one
bucket is encoded while another is sent. It only ever waits for the oldest: a rank that waited for a
younger exchange could block a rank that needs it for an older one, and both would deadlock. All
messages have tags, so the order in which they are posted does not matter.

An exchange of a parameter starts when older ones of the same parameter are done: its residuals, and
the state of some compressors, belong to one exchange at a time.
"""

import atexit
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from torch.futures import Future

from talka.channels.collectives.port import Awaited, Steps
from talka.exchange.meter import Meter
from talka.guard import Caught


class Job(NamedTuple):
    """An exchange that is to be run."""

    start: Callable[[], Steps]
    result: Callable[[], object]
    future: "Future[object]"
    names: frozenset[str]
    """Names of the parameters in it."""


class Conveyor:
    """Runs exchanges in a thread."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._active: deque[tuple[Steps | None, Iterable[Awaited], Job]] = deque()
        self._thread = threading.Thread(target=self._run, name="talka-exchange", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def put(
        self,
        start: Callable[[], Steps],
        result: Callable[[], object],
        names: frozenset[str] = frozenset(),
    ) -> "Future[object]":
        """Queue an exchange; the future gets `result()` when its steps are done, or their error."""
        future: Future[object] = Future()
        self._queue.put(Job(start, result, future, names))
        return future

    def close(self) -> None:
        """End the thread when it is idle; one that hangs ends with the process."""
        atexit.unregister(self.close)
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._queue.put(None)
            self._thread.join(timeout=1.0)

    def _run(self) -> None:
        while True:
            if self._active and self._queue.empty():
                self._advance(0, *self._active.popleft())
                continue
            new = self._queue.get()
            if new is None:
                break
            while any(new.names & job.names for _, _, job in self._active):
                self._advance(0, *self._active.popleft())
            self._advance(len(self._active), None, (), new)
        while self._active:
            self._advance(0, *self._active.popleft())

    def _advance(
        self, place: int, steps: Steps | None, awaited: Iterable[Awaited], job: Job
    ) -> None:
        """Run one exchange up to its next wait; without steps it has not started yet.

        Errors of the exchange, also while it starts, are set on its own future.
        """
        with Caught() as caught:
            if steps is None:
                steps = job.start()
            with self._meter.timed("wait_s"):
                for operation in awaited:
                    operation.wait()
            more = next(steps, None)
            if more is not None:
                self._active.insert(place, (steps, more, job))
                return
            self._meter.num_calls += 1
            job.future.set_result(job.result())
        error = caught.error
        if error is not None and not isinstance(error, Exception):  # futures accept Exceptions only
            error = RuntimeError(f"the exchange ended with {error!r}")
        if error is not None:
            job.future.set_exception(error)
