"""Deadlines of operations, and the reasons why connections end."""

import time
from collections.abc import Callable


def deadline_of(timeout_s: float | None) -> float | None:
    """Return the time at which a limit is reached; None without a limit."""
    return None if timeout_s is None else time.monotonic() + timeout_s


def left_of(deadline: float | None) -> float | None:
    """Return the seconds until a deadline; None without one."""
    return None if deadline is None else deadline - time.monotonic()


def comes_true(condition: Callable[[], bool], *, within_s: float) -> bool:
    """Wait until a condition is true, for a short time; return whether it is."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.001)
    return True


def reason_of(error: Exception) -> str:
    """Return why a connection ended, in a few words."""
    if isinstance(error, EOFError):
        return "its connection was closed"
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or repr(error)
