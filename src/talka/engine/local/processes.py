"""The driver's side of worker processes: start, speak, notice death."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from talka.engine.descriptors import limit_explained
from talka.engine.local import wire
from talka.engine.local.lifeline import end_group

_KEEPER_S = 15.0  # that a keeper may take to kill what is below it
_ENDING_S = 2.0  # that a process may take to end after it closed its channel
_MAX_FUNCTIONS = 1000  # that a worker remembers before it forgets all and starts again


class WorkerDied(Exception):
    """The process ended without an answer."""


class WorkerHandle:
    """A process with a channel to it. It leads a process group, and ends when we do."""

    def __init__(self, channel: socket.socket, pid: int, pidfd: int) -> None:
        self.channel, self.pid, self.pidfd = channel, pid, pidfd
        self._poll = select.poll()
        self._poll.register(self.channel, select.POLLIN)
        self._poll.register(self.pidfd, select.POLLIN)

    def send(self, frame: Any, descriptors: list[int] | None = None) -> None:
        try:
            wire.send(self.channel, frame, descriptors)
        except (BrokenPipeError, ConnectionError) as error:
            raise WorkerDied(self._how()) from error

    def receive(self, timeout_s: float | None = None) -> tuple[Any, list[int]]:
        """The next frame. The process is watched too: a child of it may hold the channel open."""
        ready = {
            descriptor
            for descriptor, _ in self._poll.poll(None if timeout_s is None else 1000 * timeout_s)
        }
        if not ready:
            raise TimeoutError
        if self.channel.fileno() not in ready:
            raise WorkerDied(self._how())
        try:
            return wire.receive(self.channel)
        except (EOFError, ConnectionError) as error:
            raise WorkerDied(self._how()) from error

    def end(self) -> None:
        """Kill it with all that it started, and wait until it is gone."""
        end_group(self.pid)
        self.exit_code(None)
        end_group(self.pid)
        self._close()

    def exit_code(self, timeout_s: float | None) -> int | None:
        """How it ended; None if it lives for so long, or nobody can say."""
        raise NotImplementedError

    def _close(self) -> None:
        self.channel.close()
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1

    def _how(self) -> str:
        code = self.exit_code(_ENDING_S)
        return "it closed its channel" if code is None else how_it_ended(code)


class Child(WorkerHandle):
    """A process that we started: a module's `main` under a keeper, which ends it when we end.

    Our child is the keeper; it kills all processes below it before it ends, as the worker did.
    """

    def __init__(
        self,
        module: str,
        *,
        output: int | None = None,
        environment: dict[str, str] | None = None,
        under: Sequence[str] = ("talka.engine.local.keeper",),
    ) -> None:
        with limit_explained():
            self._start([*under, module], output, environment)

    def _start(
        self, modules: list[str], output: int | None, environment: dict[str, str] | None
    ) -> None:
        channel, theirs = socket.socketpair()
        with theirs, contextlib.ExitStack() as if_it_fails:
            if_it_fails.enter_context(channel)
            self._process = subprocess.Popen(
                [sys.executable, "-m", *modules, str(theirs.fileno()), str(os.getpid())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,  # Ctrl+C reaches the driver alone, which then ends us
            )
            super().__init__(channel, self._process.pid, os.pidfd_open(self._process.pid))
            if_it_fails.pop_all()

    def exit_code(self, timeout_s: float | None) -> int | None:
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:  # it closed its channel but lives
            return None

    def ask_to_end(self) -> None:
        """Have the keeper kill all processes below it, and end."""
        if self._process.poll() is None:
            self._process.terminate()

    def end(self) -> None:
        self.ask_to_end()
        if self.exit_code(_KEEPER_S) is None:
            end_group(self.pid)
            self._process.wait()
        self._close()

    def wait(self) -> None:
        """Wait until it has ended by itself."""
        self._process.wait()
        self._close()


class WorkerProcess(Child):
    """A worker process that runs one task after another and remembers functions."""

    def __init__(self) -> None:
        super().__init__("talka.engine.local.worker_main")
        self._known: set[int] = set()
        self.is_awaited = False
        """Whether a task was sent and its reply has not arrived, or not in full."""
        self.send({"path": sys.path})

    def run(
        self,
        frame: dict[str, Any],
        descriptors: list[int],
        *,
        function_id: int,
        function: bytes,
    ) -> tuple[dict[str, Any], list[int]]:
        """Send a task and wait for its reply; the function travels only the first time."""
        forget = len(self._known) >= _MAX_FUNCTIONS
        if forget:
            self._known.clear()
        is_new = function_id not in self._known
        self._known.add(function_id)
        known = {"function_id": function_id, "forget": forget}
        self.is_awaited = True
        self.send({**frame, **known, "function": function if is_new else None}, descriptors)
        reply: dict[str, Any]
        reply, files = self.receive()
        self.is_awaited = False
        return reply, files


def how_it_ended(code: int) -> str:
    """An exit status in words.

    >>> how_it_ended(-9)
    'killed by SIGKILL, perhaps because memory ran out'
    >>> how_it_ended(3)
    'exit code 3'
    """
    if code == -signal.SIGKILL:
        return "killed by SIGKILL, perhaps because memory ran out"
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"
