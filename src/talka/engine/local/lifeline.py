"""Processes that end when their parent or driver ends, for any reason. Imports nothing large."""

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_KILL_TIMEOUT_S = 10


def watched_driver(driver: int) -> int:
    """Return a descriptor that becomes readable when the driver, the parent of this process, ends.

    It is a pidfd, not a pipe: a process that the driver forks would keep a pipe open. If the driver
    has ended already, this process ends.
    """
    try:
        watched = os.pidfd_open(driver)
    except ProcessLookupError:
        os._exit(1)
    if os.getppid() != driver:  # it had ended already, and another process may have its number now
        os._exit(1)
    return watched


def end_with_parent(parent: int) -> None:
    """Make the kernel kill this process when its parent ends.

    A thread that watches the parent would need the interpreter's lock, which a call into C may hold
    for long. The kernel sends the signal when the forking thread ends, so parents must fork in their
    main thread.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of all descendants whose parent ends, including daemons."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_group(process: int) -> None:
    """Kill a process that leads a process group, and the whole group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)


def kill_descendants() -> None:
    """Kill all descendants, repeatedly, as a process may start another before it is killed.

    Only complete in a process that adopts orphans.
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
    descendants, stack = [], [os.getpid()]
    while stack:
        below = children.get(stack.pop(), [])
        descendants += below
        stack += below
    return descendants
