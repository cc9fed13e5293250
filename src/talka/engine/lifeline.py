"""A process that ends when its driver ends, however the driver ends."""

import os
import select
import signal
import threading


def end_with_driver(driver: int) -> None:
    """Watch the driver, our parent; when it is gone, kill this process and all that it started.

    The caller leads a process group of its own.
    """
    end_with(watched_driver(driver))


def watched_driver(driver: int) -> int:
    """A descriptor that becomes readable when the driver, our parent, is gone; if it is, we end.

    Of the process, not of a pipe: a child that the driver forks would hold a pipe open.
    """
    try:
        watched = os.pidfd_open(driver)
    except ProcessLookupError:
        os.killpg(0, signal.SIGKILL)
        raise
    if os.getppid() != driver:  # it died before we looked, and the number may be someone else's now
        os.killpg(0, signal.SIGKILL)
    return watched


def end_with(watched: int) -> None:
    """Kill this process and all that it started when a watched descriptor becomes readable."""

    def watch() -> None:
        poll = select.poll()
        poll.register(watched, select.POLLIN)
        poll.poll()
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, name="talka-lifeline", daemon=True).start()


def end_group(process: int) -> None:
    """Kill a process that leads its group, and all that it started."""
    try:
        os.killpg(process, signal.SIGKILL)
    except ProcessLookupError:
        return
