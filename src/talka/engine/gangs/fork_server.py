"""Handle of the process that forks the ranks of a local gang (`fork_server_main.py`)."""

import contextlib
import socket
import sys
import time
from collections.abc import Sequence

from talka.engine.local.processes import Child, WorkerDied, WorkerHandle


class ForkServer:
    """A process that forks the ranks of a gang and reports how they end."""

    def __init__(self, logs: Sequence[int], environment: dict[str, str]) -> None:
        """Start the process.

        Parameters
        ----------
        logs
            A descriptor for the output of each rank. The process itself writes to the first.
        """
        self._logs = logs
        self._codes: dict[int, int] = {}
        self._process = Child(
            "talka.engine.gangs.fork_server_main", output=logs[0], environment=environment
        )

    def fork(self, timeout_s: float | None) -> "list[Rank]":
        """Fork a rank for each log, once torch is loaded; TimeoutError if that takes too long."""
        with contextlib.ExitStack() as local, contextlib.ExitStack() as remote:
            channels, descriptors = [], []
            for log in self._logs:
                channel, remote_channel = socket.socketpair()
                channels.append(local.enter_context(channel))  # a rank ends when it is closed
                descriptors += [log, remote.enter_context(remote_channel).fileno()]
            self._process.send({"path": sys.path}, descriptors)
            frame, pidfds = self._process.receive(timeout_s)
            local.pop_all()
        forked = zip(channels, frame["ranks"], pidfds, strict=True)
        return [Rank(self, rank, *handles) for rank, handles in enumerate(forked)]

    def exit_code(self, rank: int, timeout_s: float | None) -> int | None:
        """Wait for the exit code of a rank; None if it does not arrive in time."""
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
        """End this process. Ranks that are still alive are not ended; end them first."""
        self._process.end()


class Rank(WorkerHandle):
    """A rank that the fork server forked."""

    def __init__(
        self, fork_server: ForkServer, rank: int, channel: socket.socket, pid: int, pidfd: int
    ) -> None:
        super().__init__(channel, pid, pidfd)
        self._fork_server, self._rank = fork_server, rank

    def exit_code(self, timeout_s: float | None) -> int | None:
        return self._fork_server.exit_code(self._rank, timeout_s)
