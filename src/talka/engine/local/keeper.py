"""The parent of a worker process: `python -m talka.engine.local.keeper MODULE CHANNEL DRIVER`.

    fork -> child runs MODULE.main() -> wait -> kill all remaining descendants -> end with its code

The keeper ends the worker when the driver ends or sends SIGTERM. A worker cannot do that itself: a
task may hold the interpreter's lock for hours, and processes that a task started would survive the
worker. The keeper runs no code of tasks, and adopts all orphans of the worker, including daemons.
"""

import importlib
import os
import resource
import select
import signal
import sys

from talka.engine.local.lifeline import (
    adopt_orphans,
    end_with_parent,
    kill_descendants,
    watched_driver,
)


def main() -> None:
    """Run a module in a child process and clean up after it."""
    module, channel, driver_pid = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    driver, keeper = watched_driver(driver_pid), os.getpid()
    adopt_orphans()
    wakeup, signals = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(signals)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for signum in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(signum, _note)
    worker = os.fork()
    if worker == 0:
        end_with_parent(keeper)
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for signum in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(signum, signal.SIG_DFL)
        for descriptor in (driver, wakeup, signals):
            os.close(descriptor)
        os.set_inheritable(channel, False)
        sys.argv[:] = [module, str(channel)]
        importlib.import_module(module).main()
        return
    os.close(channel)  # so that the driver notices when the worker closes it
    code = _wait(worker, driver, wakeup)
    kill_descendants()
    _end_like(code)


def _note(signum: int, frame: object) -> None:
    """Do nothing: the number of the signal is already in the pipe."""


def _wait(worker: int, driver: int, wakeup: int) -> int:
    """Wait until the worker has ended or must end; return its exit code, negative for a signal."""
    poll = select.poll()
    poll.register(driver, select.POLLIN)
    poll.register(wakeup, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if driver in ready:
            return -signal.SIGKILL
        if signal.SIGTERM in os.read(wakeup, 4096):
            return -signal.SIGKILL
        while True:
            try:
                ended, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if ended == worker:
                return os.waitstatus_to_exitcode(status)
            if ended == 0:
                break


def _end_like(code: int) -> None:
    """End with the worker's exit code, or by the signal that killed it."""
    if code >= 0:
        os._exit(code)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the worker may have dumped core already
    if code != -signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)


if __name__ == "__main__":
    main()
