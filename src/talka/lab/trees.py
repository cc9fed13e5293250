"""The processes of a rank: its own, and their descendants at any depth.

A daemon that left its session and outlived its parent is not found; it ends with the run.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_STOP_TIMEOUT_S = 2.0  # a process that waits for a disk does not stop until it is served


class Process(NamedTuple):
    """One process, as listed in /proc."""

    pid: int
    parent: int
    session: int
    is_running: bool
    """False for a process that is stopped or has ended."""


def processes() -> Iterator[Process]:
    """Yield all processes in /proc."""
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                stat = Path(entry.path, "stat").read_text(errors="replace")
                state, parent, _, session = stat.rpartition(")")[2].split()[:4]
                is_running = state not in "tTZX"
                yield Process(int(entry.name), int(parent), int(session), is_running)


def family(leader: int, among: list[Process]) -> list[Process]:
    """Return the processes of the leader's session, and all their descendants.

    >>> leader = Process(7, 1, 7, True)
    >>> orphan, daemon = leader._replace(pid=8, parent=1), Process(9, 8, 9, True)
    >>> [process.pid for process in family(7, [leader, orphan, daemon])]
    [7, 8, 9]
    """
    pids = {process.pid for process in among if leader in (process.pid, process.session)}
    while more := {p.pid for p in among if p.parent in pids and p.pid not in pids}:
        pids |= more
    return [process for process in among if process.pid in pids]


def signal_family(leader: int, signum: int) -> None:
    """Send a signal to the processes of a rank.

    They are stopped before they are killed, so that none can start another meanwhile.
    """
    if signum in (signal.SIGSTOP, signal.SIGKILL):
        _stop(leader)
    if signum != signal.SIGSTOP:
        _send(family(leader, list(processes())), signum)


def _stop(leader: int) -> None:
    deadline = time.monotonic() + _STOP_TIMEOUT_S
    while time.monotonic() < deadline:
        running = [process for process in family(leader, list(processes())) if process.is_running]
        if not running:
            return
        _send(running, signal.SIGSTOP)
        time.sleep(0.001)


def _send(receivers: list[Process], signum: int) -> None:
    for process in receivers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signum)
