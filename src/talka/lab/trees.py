"""Which processes belong to a rank: what it started, and what they started, however deep.

A daemon that left its session and outlived its parent is no longer found; it ends with the run.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_STOP_TIMEOUT_S = 2.0  # one that waits for a disk stops only after it


class Process(NamedTuple):
    pid: int
    parent: int
    session: int
    is_running: bool
    """Neither stopped nor ended."""


def processes() -> Iterator[Process]:
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                stat = Path(entry.path, "stat").read_text(errors="replace")
                state, parent, _, session = stat.rpartition(")")[2].split()[:4]
                is_running = state not in "tTZX"
                yield Process(int(entry.name), int(parent), int(session), is_running)


def family(leader: int, among: list[Process]) -> list[Process]:
    """All of the leader's session, and all below them.

    >>> leader = Process(7, 1, 7, True)
    >>> orphan, daemon = leader._replace(pid=8, parent=1), Process(9, 8, 9, True)
    >>> [process.pid for process in family(7, [leader, orphan, daemon])]
    [7, 8, 9]
    """
    found = {process.pid for process in among if leader in (process.pid, process.session)}
    while more := {p.pid for p in among if p.parent in found and p.pid not in found}:
        found |= more
    return [process for process in among if process.pid in found]


def signal_family(leader: int, signum: int) -> None:
    """Send a signal to all of them.

    Before they are killed they are stopped: none escapes by starting another meanwhile.
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


def _send(to: list[Process], signum: int) -> None:
    for process in to:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signum)
