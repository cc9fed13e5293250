"""Handles of the processes that fork ranks (`fork_server_main.py`), kept for later gangs."""

import contextlib
import os
import resource
import socket
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, Self

from talka.engine.descriptors import limit_explained
from talka.engine.local.frame_channel import FrameChannel
from talka.engine.local.processes import Child, WorkerDied, how_it_ended
from talka.files import temporary_folder

TAIL_BYTES: Final = 8_000


class Surroundings(NamedTuple):
    """All that ranks inherit from their fork server. Gangs share one only if these are equal."""

    preload: tuple[str, ...]
    """Modules that are imported once, before the ranks are forked."""
    path: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    folder: str
    cores: tuple[int, ...]
    descriptor_limit: tuple[int, int]

    @classmethod
    def here(cls, preload: Sequence[str], environment: dict[str, str]) -> Self:
        """Return the surroundings of this process, with another environment."""
        return cls(
            tuple(preload),
            tuple(sys.path),
            tuple(sorted(environment.items())),
            os.getcwd(),
            tuple(sorted(os.sched_getaffinity(0))),
            resource.getrlimit(resource.RLIMIT_NOFILE),
        )


class Forked(NamedTuple):
    """The channels to the leader of a gang's ranks and to each rank."""

    leader: FrameChannel
    ranks: list[FrameChannel]


class ForkServer:
    """A process that forks the ranks of gangs."""

    def __init__(self, surroundings: Surroundings) -> None:
        self.surroundings = surroundings
        self.num_users = 0
        self.has_forked = False
        """True if a rank of this process has answered; set by its users."""
        self._log = open_log(None)
        self._lock = threading.Lock()
        try:
            self._process = Child(
                "talka.engine.gangs.fork_server_main",
                output=self._log.fileno(),
                environment=dict(surroundings.environment),
            )
        except BaseException:
            self._log.close()
            raise
        hello = {"path": list(surroundings.path), "preload": list(surroundings.preload)}
        self._send(hello, [])

    @property
    def is_alive(self) -> bool:
        """True if the process has not ended."""
        return self._process.exit_code(0) is None

    def fork(self, logs: Sequence[int], mains: int) -> Forked:
        """Request a rank for each log, without waiting for it.

        If the process has ended, or ends before it has forked, the channels are closed.

        Parameters
        ----------
        mains
            Descriptor of a file with the functions of all roles, which the ranks inherit.
        """
        pairs: list[tuple[socket.socket, socket.socket]] = []
        store = os.memfd_create("talka-store")
        try:
            with limit_explained():
                for _ in range(1 + len(logs)):
                    pairs.append(socket.socketpair())
            remote = [theirs.fileno() for _, theirs in pairs]
            of_ranks = [number for each in zip(logs, remote[1:], strict=True) for number in each]
            self._send({"fork": len(logs)}, [remote[0], store, mains, *of_ranks])
        except BaseException:
            for own, _ in pairs:
                own.close()
            raise
        finally:
            os.close(store)
            for _, theirs in pairs:
                theirs.close()
        leader, *ranks = (FrameChannel(own) for own, _ in pairs)
        return Forked(leader, ranks)

    def how_it_ended(self, timeout_s: float) -> str:
        """Describe how the process ended."""
        code = self._process.exit_code(timeout_s)
        return "it closed its channel" if code is None else how_it_ended(code)

    def tail(self) -> str:
        """Return the end of what the process printed, such as the error of an import."""
        return tail_of(self._log.fileno())

    def end(self) -> None:
        """End the process with all that it has forked."""
        self._process.end()
        self._log.close()

    def _send(self, frame: Any, descriptors: list[int]) -> None:
        # If the process has ended, the channels that were sent are closed, which their users notice.
        with self._lock, contextlib.suppress(WorkerDied):
            self._process.send(frame, descriptors)


class ForkServers:
    """The fork servers of an engine: one for each kind of gang, kept until others are needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: dict[tuple[str, ...], ForkServer] = {}

    def borrow(self, surroundings: Surroundings) -> ForkServer:
        """Return a fork server with these surroundings; `give_back` must be called."""
        with self._lock:
            server = self._of.get(surroundings.preload)
            if server is None or server.surroundings != surroundings or not server.is_alive:
                replaced, server = server, ForkServer(surroundings)
                self._of[surroundings.preload] = server
                if replaced is not None and replaced.num_users == 0:
                    replaced.end()
            server.num_users += 1
            return server

    def give_back(self, server: ForkServer) -> None:
        """Declare the end of a gang. A server that is not needed any more ends."""
        with self._lock:
            server.num_users -= 1
            is_kept = self._of.get(server.surroundings.preload) is server
            if is_kept and not server.has_forked and server.num_users == 0:
                del self._of[server.surroundings.preload]  # it may never be ready
                is_kept = False
            if not is_kept and server.num_users == 0:
                server.end()

    def close(self) -> None:
        """End all servers; the gangs must have ended."""
        with self._lock:
            servers, self._of = list(self._of.values()), {}
            for server in servers:
                server.end()


def open_log(path: Path | None) -> IO[bytes]:
    """Open a log file; None for one without a name."""
    if path is None:
        return tempfile.TemporaryFile(buffering=0, dir=temporary_folder())
    path.parent.mkdir(exist_ok=True)
    return path.open("w+b", buffering=0)


def tail_of(log: int) -> str:
    """Return the end of a log file, given its descriptor."""
    size = os.fstat(log).st_size
    return os.pread(log, TAIL_BYTES, max(0, size - TAIL_BYTES)).decode(errors="replace")
