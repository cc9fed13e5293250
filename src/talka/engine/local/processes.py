"""Handles of worker processes in the driver: start them, talk to them, detect their death."""

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

_KEEPER_S = 15.0  # seconds for a keeper to kill its processes
_ENDING_S = 2.0  # seconds for a process to end after it closed its channel
_MAX_FUNCTIONS = 1000  # functions that a worker caches before it clears the cache


class WorkerDied(Exception):
    """A worker process ended without a reply."""


class WorkerHandle:
    """A worker process and the channel to it.

    The process leads a process group and ends when the driver ends.
    """

    def __init__(self, channel: socket.socket, pid: int, pidfd: int) -> None:
        self.channel, self.pid, self.pidfd = channel, pid, pidfd
        self._poll = select.poll()
        self._poll.register(self.channel, select.POLLIN)
        self._poll.register(self.pidfd, select.POLLIN)

    def send(self, frame: Any, descriptors: list[int] | None = None) -> None:
        """Send a frame with descriptors; raise `WorkerDied` if the process has ended."""
        try:
            wire.send(self.channel, frame, descriptors)
        except (BrokenPipeError, ConnectionError) as error:
            raise WorkerDied(self._how()) from error

    def receive(self, timeout_s: float | None = None) -> tuple[Any, list[int]]:
        """Wait for the next frame and return it with its descriptors.

        The process is watched too, as a child of it may keep the channel open. Raises `WorkerDied`,
        or TimeoutError.
        """
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
        """Kill the process and all that it started, and wait until it has ended."""
        end_group(self.pid)
        self.exit_code(None)
        end_group(self.pid)
        self._close()

    def exit_code(self, timeout_s: float | None) -> int | None:
        """Wait for the process and return its exit code; None after the timeout or if unknown."""
        raise NotImplementedError

    def _close(self) -> None:
        self.channel.close()
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1

    def _how(self) -> str:
        """Describe how the process ended."""
        code = self.exit_code(_ENDING_S)
        return "it closed its channel" if code is None else how_it_ended(code)


class Child(WorkerHandle):
    """A process that runs the `main` of a module under a keeper.

    The direct child is the keeper. It ends the process when the driver ends, kills all processes
    that are left, and then ends with the same exit code.
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
        channel, remote = socket.socketpair()
        with remote, contextlib.ExitStack() as on_failure:
            on_failure.enter_context(channel)
            self._process = subprocess.Popen(
                [sys.executable, "-m", *modules, str(remote.fileno()), str(os.getpid())],
                pass_fds=[remote.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,  # Ctrl+C only reaches the driver, which then ends the others
            )
            super().__init__(channel, self._process.pid, os.pidfd_open(self._process.pid))
            on_failure.pop_all()

    def exit_code(self, timeout_s: float | None) -> int | None:
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:  # it closed its channel but is alive
            return None

    def ask_to_end(self) -> None:
        """Make the keeper kill all of its processes and end; does not wait."""
        if self._process.poll() is None:
            self._process.terminate()

    def end(self) -> None:
        self.ask_to_end()
        if self.exit_code(_KEEPER_S) is None:
            end_group(self.pid)
            self._process.wait()
        self._close()

    def wait(self) -> None:
        """Wait until the process has ended without being killed."""
        self._process.wait()
        self._close()


class WorkerProcess(Child):
    """A worker process that runs one task after another and caches functions."""

    def __init__(self) -> None:
        super().__init__("talka.engine.local.worker_main")
        self._known: set[int] = set()
        self.is_awaited = False
        """True if a task was sent and its reply has not been received completely."""
        self.send({"path": sys.path})

    def run(
        self,
        frame: dict[str, Any],
        descriptors: list[int],
        *,
        function_id: int,
        function: bytes,
    ) -> tuple[dict[str, Any], list[int]]:
        """Send a task and wait for its reply; the function is sent only the first time."""
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
    """Describe an exit code.

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
