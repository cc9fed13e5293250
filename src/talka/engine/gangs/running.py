"""A gang that runs: a thread of the driver serves its ranks until all have ended.

    messages of ranks -> `Outcomes`, `KeyTable` -> answers, reports of losses, results

The thread reads what ranks send whether or not the caller waits, so no rank waits for the caller.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, Protocol, Self

from talka.engine.base import Gang
from talka.engine.calls import TaskProblem
from talka.engine.events import RankLost
from talka.engine.gangs.keys import Answer, KeyTable
from talka.engine.gangs.outcomes import Outcomes
from talka.engine.gangs.part import RankMessage
from talka.engine.gangs.spec import GangSpec
from talka.errors import GangTimeoutError, TalkaError
from talka.events import Event, Stream, registered
from talka.guard import Caught, Logged


class Ranks(Protocol):
    """The processes of a gang, wherever they run; `MachinePart` is one. Only the thread of a gang calls them."""

    def start(self) -> None:
        """Start all ranks; the first call."""
        ...

    def receive(self, timeout_s: float | None) -> list[RankMessage]:
        """Wait for messages; return none after the timeout or after `wake`."""
        ...

    def send(self, rank: int, frame: dict[str, Any]) -> None:
        """Send a frame to a rank; must not wait for it."""
        ...

    def end(self, rank: int) -> None:
        """Kill a rank; must not wait for it."""
        ...

    def wake(self) -> None:
        """Make `receive` return soon; may be called by any thread."""
        ...

    def tail(self, rank: int) -> str:
        """Return the end of the log of a rank."""
        ...

    def close(self) -> None:
        """End all ranks; the last call."""
        ...


class RunningGang(Gang):
    """The handle of a gang, which `Engine.start_gang` returns; `Gang` documents its methods."""

    def __init__(
        self,
        spec: GangSpec,
        ranks: Ranks,
        *,
        events: Stream,
        on_end: Callable[["RunningGang"], None],
    ) -> None:
        self._spec, self._ranks, self._events, self._on_end = spec, ranks, events, on_end
        self._outcomes = Outcomes(
            spec.size,
            on_failure=spec.on_failure,
            timeout_s=spec.timeout_s,
            start_s=time.monotonic(),
        )
        self._keys = KeyTable()
        self._is_stopped = threading.Event()
        self._is_done = threading.Event()
        self._lock = threading.Lock()
        self._may_wake = True  # `Ranks.wake` must not be called after `Ranks.close`
        self._results: list[Any] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="talka-gang", daemon=True)
        self._thread.start()

    def wait(self, timeout_s: float | None = None) -> list[Any]:
        if not self._is_done.wait(timeout_s):
            assert timeout_s is not None
            raise GangTimeoutError(self._spec.size, self._outcomes.running, timeout_s)
        if threading.current_thread() is not self._thread:
            self._thread.join()  # it has nothing left to do
        if self._error is not None:
            raise self._error
        return list(self._results)

    def stop(self) -> None:
        self._is_stopped.set()
        with self._lock:
            if self._may_wake:
                self._ranks.wake()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None and not self._is_stopped.is_set():
            try:
                self.wait()
            except BaseException:  # Ctrl+C while it waits
                self.stop()
                raise
        else:
            self.stop()

    # Methods that run in the thread of the gang.

    def _run(self) -> None:
        with Caught() as caught:
            self._results = self._serve()
        with self._lock:
            self._may_wake = False
        with Caught() as closing:
            self._ranks.close()
        self._error = caught.error or closing.error
        self._on_end(self)
        self._is_done.set()

    def _serve(self) -> list[Any]:
        self._ranks.start()
        outcomes = self._outcomes
        while not outcomes.is_over:
            for message in self._ranks.receive(outcomes.left_s(time.monotonic())):
                self._handle(message.rank, message.frame)
            now_s = time.monotonic()
            if self._is_stopped.is_set():
                outcomes.stopped(now_s)
            outcomes.expired(now_s)
        results = outcomes.results(self._ranks.tail)
        for rank in outcomes.finished_ranks:
            self._ranks.send(rank, {"bye": True})
        return results

    def _handle(self, rank: int, frame: dict[str, Any]) -> None:
        """Handle a message of a rank."""
        if "died" in frame:
            self._fail(rank, died=True, how=f"died ({frame['died']})")
        elif "problem" in frame:
            problem = TaskProblem(*frame["problem"])
            self._fail(rank, died=False, how=f"raised {problem.cause}\n  at {problem.line}")
        elif "failed" in frame:
            self._fail(rank, died=False, how=frame["failed"])
        elif "result" in frame:
            self._outcomes.finished(rank, frame["result"])
        elif "event" in frame:
            self._events.notify_listeners(registered()[frame["event"]](*frame["fields"]))
        elif "set" in frame:
            self._answer(self._keys.set(rank, frame["call"], frame["set"], frame["value"]))
        elif "forget" in frame:
            self._keys.forget(rank, frame["forget"], frame["get"])
        elif "get" in frame:
            self._answer(self._keys.get(rank, frame["call"], frame["get"]))
        else:
            raise TalkaError(
                f"rank {rank} sent an unknown message with {', '.join(map(repr, frame))}"
            )

    def _answer(self, answers: list[Answer]) -> None:
        for answer in answers:
            frame = {"answer": answer.call, "value": answer.value, "refusal": answer.refusal}
            self._ranks.send(answer.rank, frame)

    def _fail(self, rank: int, *, died: bool, how: str) -> None:
        """Record a failure, and report it to the other ranks if they continue."""
        notified = self._outcomes.failed(rank, time.monotonic(), died=died, how=how)
        self._keys.forget_rank(rank)
        if notified is None or self._spec.on_failure == "end":
            return
        for other in notified:
            self._ranks.send(other, {"lost": rank, "how": how})
        self._ranks.end(rank)  # it may have raised and not end, or have left processes
        self._emit(RankLost(rank, self._spec.roles[rank], how))

    def _emit(self, event: Event) -> None:
        with Logged("emit an event"):
            self._events.emit(event)


class RunningGangs:
    """The gangs of an engine that run, so that `close` can stop them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._gangs: set[RunningGang] = set()
        self._is_closed = False

    def start(self, spec: GangSpec, ranks: Ranks, events: Stream) -> RunningGang:
        """Start a gang; raises TalkaError, and closes the ranks, if the engine is closed."""
        with self._lock:
            if self._is_closed:
                ranks.close()
                raise TalkaError("this engine is closed and cannot start a gang. Open another one.")
            gang = RunningGang(spec, ranks, events=events, on_end=self._ended)
            self._gangs.add(gang)
            return gang

    def close(self) -> None:
        """Stop all gangs and wait until their ranks have ended."""
        with self._lock:
            self._is_closed = True
            gangs = list(self._gangs)
        for gang in gangs:
            gang.stop()

    def _ended(self, gang: RunningGang) -> None:
        with self._lock:
            self._gangs.discard(gang)
