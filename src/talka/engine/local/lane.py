"""A queue of tasks with the threads that serve it, started on demand.

Not a `talka.threads.ThreadPool`: its threads are daemons, since nothing can interrupt a native task,
and each of them keeps a worker process or a meter while it takes task after task.
"""

import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue

from talka.engine.driver import Task


class Lane:
    """Runs `serve(name)` in each thread, which takes tasks with `next` until that returns None."""

    def __init__(self, serve: Callable[[str], None], prefix: str, max_threads: int) -> None:
        self._serve, self._prefix, self._max_threads = serve, prefix, max_threads
        self._queue: SimpleQueue[Task | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._num_idle = 0
        self._idle_lock = threading.Lock()
        self._is_stopped = False

    def put(self, task: Task) -> None:
        """Queue a task, and start another thread if all are busy. Called by one thread at a time."""
        if len(self._threads) < self._max_threads and self._queue.qsize() >= self._num_idle:
            name = f"{self._prefix}-{len(self._threads)}"
            # A daemon, as nothing can interrupt a native task and Ctrl+C must not wait for it.
            thread = threading.Thread(
                target=self._serve, args=(name,), name=f"talka-{name}", daemon=True
            )
            self._threads.append(thread)
            try:
                thread.start()
            except RuntimeError:  # the system has no more threads: continue with the existing ones
                self._threads.pop()
                if not self._threads:
                    raise
        self._queue.put(task)

    def next(self, *, when_idle: Callable[[], None]) -> Task | None:
        """Return the next task; None if the lane was stopped.

        Calls `when_idle` before it waits, and before it returns None.
        """
        try:
            task = self._queue.get_nowait()
        except Empty:
            when_idle()
            self._change_idle(1)
            task = self._queue.get()
            self._change_idle(-1)
        if self._is_stopped:
            when_idle()
            return None
        return task

    def _change_idle(self, amount: int) -> None:
        with self._idle_lock:
            self._num_idle += amount

    def stop(self) -> None:
        """Start no further tasks."""
        self._is_stopped = True
        for _ in self._threads:
            self._queue.put(None)

    def join(self, deadline_s: float) -> None:
        """Wait for all threads, at most until this time of `time.monotonic`."""
        for thread in self._threads:
            if thread.is_alive():  # Ctrl+C may have prevented its start
                thread.join(max(0.0, deadline_s - time.monotonic()))
