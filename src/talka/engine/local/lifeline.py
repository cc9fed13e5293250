"""Processes that end with their parent or driver, however that ends. Nothing heavy is imported."""

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_KILL_TIMEOUT_S = 10


def watched_driver(driver: int) -> int:
    """Return a descriptor that becomes readable when the driver, our parent, is gone.

    It is one of the process, not of a pipe: a child that the driver forks would hold a pipe open.
    If the driver is gone already, this process ends.
    """
    try:
        watched = os.pidfd_open(driver)
    except ProcessLookupError:
        os._exit(1)
    if os.getppid() != driver:  # it died before we looked, and the number may be someone else's now
        os._exit(1)
    return watched


def end_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends.

    A thread that watches would need the interpreter's lock, which a call into C may hold for long.
    The signal comes when the thread that forked us ends: parents fork in their main thread.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, daemons included."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_group(process: int) -> None:
    """Kill a process that leads its group, and all of that group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)


def kill_descendants() -> None:
    """Kill until none is left: a process that is being killed may just have started another.

    For a process that adopts orphans: others might miss some.
    """
    deadline = time.monotonic() + _KILL_TIMEOUT_S
    while (pids := _descendants()) and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.002)


def _descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                stat = Path(entry.path, "stat").read_text(errors="replace")
                parent = int(stat.rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found, stack = [], [os.getpid()]
    while stack:
        below = children.get(stack.pop(), [])
        found += below
        stack += below
    return found
