"""One thread that carries all exchanges of a worker, first in, first out.

An exchange is written as a generator: it encodes, posts sends and receives, and yields what it waits
for. Before the thread waits for the oldest, it starts what came meanwhile, so one bucket is encoded
while another travels. It never waits for anything but the oldest: a rank that waited for a younger
one could hold up a rank that needs it for an older one, and both would wait for ever.
All messages carry tags, so the order in which they are posted is of no account. Of collectives, which
have no tags, an exchange may issue one at its start: two issued in different order on two ranks would
return wrong sums without an error.
"""

import atexit
import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import Protocol

from torch.futures import Future

from talka.exchange.meter import Meter
from talka.guard import Caught


class Awaited(Protocol):
    """What `torch.distributed` returns for an operation that goes on."""

    def wait(self) -> object: ...


Steps = Generator[Iterable[Awaited], None, None]
"""Yields what has to be done before it can go on."""

Job = tuple[Callable[[], Steps], Callable[[], object], "Future[object]"]


class Conveyor:
    """Runs exchanges in a thread of its own."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._active: deque[tuple[Steps | None, Iterable[Awaited], Job]] = deque()
        self._thread = threading.Thread(target=self._run, name="talka-exchange", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def put(self, start: Callable[[], Steps], result: Callable[[], object]) -> "Future[object]":
        """The future is set to `result()` when the steps are through, or to what they raised."""
        future: Future[object] = Future()
        self._queue.put((start, result, future))
        return future

    def close(self) -> None:
        """End the thread once it has nothing to do; what hangs is left to the end of the process."""
        atexit.unregister(self.close)
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._queue.put(None)
            self._thread.join(timeout=1.0)

    def _run(self) -> None:
        while True:
            if self._active and self._queue.empty():
                self._go_on(0, *self._active.popleft())
                continue
            new = self._queue.get()
            if new is None:
                break
            self._go_on(len(self._active), None, (), new)
        while self._active:
            self._go_on(0, *self._active.popleft())

    def _go_on(self, place: int, steps: Steps | None, awaited: Iterable[Awaited], job: Job) -> None:
        """Run one exchange up to its next wait; without steps it has not started yet.

        Whatever the exchange raises, also while it starts, is set on its own future.
        """
        start, result, future = job
        with Caught() as caught:
            if steps is None:
                steps = start()
            with self._meter.timed("wait_s"):
                for one in awaited:
                    one.wait()
            more = next(steps, None)
            if more is not None:
                self._active.insert(place, (steps, more, job))
                return
            self._meter.num_calls += 1
            future.set_result(result())
        error = caught.error
        if error is not None and not isinstance(error, Exception):  # a future takes no other
            error = RuntimeError(f"the exchange was ended by {error!r}")
        if error is not None:
            future.set_exception(error)
