"""Gangs: ranks that run at the same time and share a gloo process group.

    driver: fork `size` processes -> send `main` -> collect results; the first failure ends all ranks

Inside torchrun (RANK is set) the ranks that it started are the gang.
"""

import contextlib
import os
import select
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from talka.engine import parcels, storage
from talka.engine.calls import TaskProblem
from talka.engine.descriptors import limit_explained
from talka.engine.gangs.fork_server import ForkServer, Rank
from talka.engine.local.lifeline import end_group
from talka.engine.local.processes import WorkerDied
from talka.engine.shipping import ship
from talka.errors import GangError, InvalidValueError
from talka.events import Measured, PhaseAdvanced, PhaseEnded, PhaseStarted, Stream, registered
from talka.extras import require
from talka.files import temporary_folder
from talka.machine import num_cores

# Seconds to wait after the first failure: another rank may have died before it.
GRACE_S = 0.5
TAIL_BYTES = 8_000
PROGRESS: Final = (PhaseStarted, PhaseAdvanced, PhaseEnded, Measured)
"""Events of rank 0 that reach listeners of the driver, such as the progress bar; one rank is enough, as
all do the same work. The events of all ranks are in their files."""


class Sign(NamedTuple):
    """Failure of a rank as the driver observed it."""

    rank: int
    seen_s: float
    died: bool
    how: str


def culprit(signs: Sequence[Sign]) -> Sign:
    """Return the failure to report: the first death, or the first exception if no rank died.

    Exceptions in other ranks are often caused by the death of one.

    >>> culprit([Sign(0, 1.0, False, "raised"), Sign(2, 1.2, True, "died")]).rank
    2
    """
    return min(signs, key=lambda sign: (not sign.died, sign.seen_s))


def check_size(size: int) -> None:
    """Raise InvalidValueError if a gang cannot have this many ranks."""
    if size < 1:
        raise InvalidValueError("size", size, "a whole number of at least 1")


def local_gang(
    main: Callable[..., Any],
    args: Sequence[Any],
    *,
    size: int,
    timeout_s: float | None,
    events: Stream,
) -> list[Any]:
    """Run a gang as processes on loopback, or inside torchrun as one of its ranks."""
    check_size(size)
    require("torch", by="a gang")
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        from talka.engine.gangs.torchrun import existing_gang

        return existing_gang(main, args, size=size, events=events)
    shipped = ship(main, (main, tuple(args)))
    with limit_explained(), _Gang(size, events, timeout_s) as gang:
        return gang.run(shipped)


class _Gang:
    """A gang of local processes, as the driver sees it."""

    def __init__(self, size: int, events: Stream, timeout_s: float | None) -> None:
        self._size = size
        self._timeout_s = timeout_s
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self._events = events
        self._run_dir = events.dir
        self._fork_server: ForkServer | None = None
        self._children: list[Rank] = []
        self._logs: list[IO[bytes]] = []

    def __enter__(self) -> "_Gang":
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self) -> None:
        for rank in range(self._size):
            self._logs.append(_open_log(self._log_path(rank)))
        logs = [log.fileno() for log in self._logs]
        self._fork_server = ForkServer(logs, _environment(self._size))
        try:
            self._children = self._fork_server.fork(self._timeout_s)
        except WorkerDied as death:
            raise self._error(Sign(0, 0.0, died=True, how=f"died ({death})")) from None
        except TimeoutError:
            raise self._late(0) from None

    def __exit__(self, *error: object) -> None:
        for child in self._children:
            end_group(child.pid)  # all at once, so that no rank reports the end of another
        for child in self._children:
            child.end()
        if self._fork_server is not None:
            self._fork_server.end()
        for log in self._logs:
            log.close()

    def run(self, shipped: bytes) -> list[Any]:
        """Send `main` to all ranks and return their results in order of rank."""
        for rank, child in enumerate(self._children):
            log_path, run_dir = self._log_path(rank), self._run_dir
            hello = {
                "rank": rank,
                "size": self._size,
                "path": sys.path,
                "main": shipped,
                "log_path": None if log_path is None else str(log_path),
                "run_dir": None if run_dir is None else str(run_dir),
            }
            with contextlib.suppress(
                WorkerDied
            ):  # reported with its log when results are collected
                child.send(hello)
        return self._collect()

    def _collect(self) -> list[Any]:
        results: dict[int, Any] = {}
        signs: list[Sign] = []
        deadline = self._deadline
        poll, rank_of = self._poll()
        while len(results) < self._size:
            left_s = None if deadline is None else deadline - time.monotonic()
            ready = poll.poll(None if left_s is None else max(0, left_s * 1000))
            if not ready and (signs or left_s is not None):
                break
            for rank in {rank_of[descriptor] for descriptor, _ in ready}:
                sign = self._listen(rank, results)
                if sign is not None:
                    signs.append(sign)
                    deadline = min(deadline or float("inf"), time.monotonic() + GRACE_S)
                if sign is not None or rank in results:
                    poll.unregister(self._children[rank].channel)
                    poll.unregister(self._children[rank].pidfd)
        if signs:
            raise self._error(culprit(signs))
        if len(results) < self._size:
            raise self._late(next(rank for rank in range(self._size) if rank not in results))
        for child in self._children:
            with contextlib.suppress(WorkerDied):
                child.send({"bye": True})
        return [results[rank] for rank in range(self._size)]

    def _poll(self) -> tuple[select.poll, dict[int, int]]:
        poll = select.poll()
        rank_of = {}
        for rank, child in enumerate(self._children):
            for descriptor in (child.channel.fileno(), child.pidfd):
                poll.register(descriptor, select.POLLIN)
                rank_of[descriptor] = rank
        return poll, rank_of

    def _listen(self, rank: int, results: dict[int, Any]) -> Sign | None:
        """Receive one frame of a rank: an event, a result or a failure."""
        try:
            frame, descriptors = self._children[rank].receive()
        except WorkerDied as death:
            return Sign(rank, time.monotonic(), died=True, how=f"died ({death})")
        if "event" in frame:
            self._events.notify_listeners(registered()[frame["event"]](*frame["fields"]))
        elif "problem" in frame:
            problem = TaskProblem(*frame["problem"])
            how = f"raised {problem.cause}\n  at {problem.line}"
            return Sign(rank, time.monotonic(), died=False, how=how)
        else:
            [content] = parcels.unwrap(frame["result"], descriptors)
            results[rank] = parcels.value_of(content)
        return None

    def _late(self, rank: int) -> GangError:
        how = f"had not finished after {self._timeout_s:g} s"
        return self._error(Sign(rank, 0.0, died=False, how=how))

    def _error(self, sign: Sign) -> GangError:
        return GangError(sign.rank, self._size, sign.how, _tail(self._logs[sign.rank]))

    def _log_path(self, rank: int) -> Path | None:
        return None if self._run_dir is None else self._run_dir / "logs" / f"rank-{rank}.log"


def _open_log(path: Path | None) -> IO[bytes]:
    if path is None:
        return tempfile.TemporaryFile(buffering=0, dir=temporary_folder())
    path.parent.mkdir(exist_ok=True)
    return path.open("w+b", buffering=0)


def _tail(log: IO[bytes]) -> str:
    size = os.fstat(log.fileno()).st_size
    return os.pread(log.fileno(), TAIL_BYTES, max(0, size - TAIL_BYTES)).decode(errors="replace")


def _environment(size: int) -> dict[str, str]:
    threads = max(1, num_cores() // size)
    return {
        "OMP_NUM_THREADS": str(threads),  # otherwise every rank uses all cores
        **os.environ,
        "GLOO_SOCKET_IFNAME": "lo",  # a local gang listens on loopback only
        "PYTHONUNBUFFERED": "1",  # the end of a log must be complete when its rank dies
    }


def encoded(value: Any) -> parcels.Parcels:
    """Prepare the result of a rank for a message."""
    return parcels.wrap([storage.to_storable(value)])
