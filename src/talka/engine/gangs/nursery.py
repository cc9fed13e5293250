"""The driver's side of the process that forks the ranks of a local gang (`nursery_main.py`)."""

import contextlib
import socket
import sys
import time
from collections.abc import Sequence

from talka.engine.local.processes import Child, WorkerDied, WorkerHandle


class Nursery:
    """Forks ranks, and knows how they ended."""

    def __init__(self, logs: Sequence[int], environment: dict[str, str]) -> None:
        """Start the process; `logs` are descriptors of what ranks print, the first of it, too."""
        self._logs = logs
        self._codes: dict[int, int] = {}
        self._process = Child(
            "talka.engine.gangs.nursery_main", output=logs[0], environment=environment
        )

    def fork(self, timeout_s: float | None) -> "list[Rank]":
        """Wait for torch, then for a process for each log; TimeoutError if that takes too long."""
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            channels, given = [], []
            for log in self._logs:
                channel, other = socket.socketpair()
                channels.append(ours.enter_context(channel))  # closed, it ends who listens to it
                given += [log, theirs.enter_context(other).fileno()]
            self._process.send({"path": sys.path}, given)
            frame, descriptors = self._process.receive(timeout_s)
            ours.pop_all()
        born = zip(channels, frame["ranks"], descriptors, strict=True)
        return [Rank(self, rank, *of_rank) for rank, of_rank in enumerate(born)]

    def exit_code(self, rank: int, timeout_s: float | None) -> int | None:
        """How a rank ended, if that is heard in time."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while rank not in self._codes:
            left_s = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                frame, _ = self._process.receive(left_s)
            except (TimeoutError, WorkerDied):
                return None
            self._codes[frame["rank"]] = frame["code"]
        return self._codes[rank]

    def end(self) -> None:
        """Ranks that are alive stay so: end them first."""
        self._process.end()


class Rank(WorkerHandle):
    """A process that a nursery forked."""

    def __init__(
        self, nursery: Nursery, rank: int, channel: socket.socket, pid: int, pidfd: int
    ) -> None:
        super().__init__(channel, pid, pidfd)
        self._nursery, self._rank = nursery, rank

    def exit_code(self, timeout_s: float | None) -> int | None:
        return self._nursery.exit_code(self._rank, timeout_s)
