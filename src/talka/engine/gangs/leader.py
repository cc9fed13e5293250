"""The leader of the ranks of one gang on this machine: forks them, and reports how they end.

It adopts orphans, so at the end of the gang it ends everything that the ranks started, daemons too.
It runs no code of ranks, and ends when its driver closes the channel, or when the fork server ends.
"""

import contextlib
import os
import select
import signal
import socket

from talka.engine.gangs.member import serve
from talka.engine.local import wire
from talka.engine.local.lifeline import (
    adopt_orphans,
    end_group,
    end_with_parent,
    kill_descendants,
)


def lead(descriptors: list[int]) -> None:
    """Fork the ranks and watch them. Returns in the ranks only, when they are done.

    Parameters
    ----------
    descriptors
        Channel to the driver, the file through which ranks find each other, the file with their
        functions, then for each rank its log and its channel.
    """
    channel, store, mains, *of_ranks = descriptors
    logs, channels = of_ranks[::2], of_ranks[1::2]
    adopt_orphans()
    leader, ranks = os.getpid(), []
    for log, own in zip(logs, channels, strict=True):
        process = os.fork()
        if process == 0:
            end_with_parent(leader)
            _run_rank(log, own, (store, mains), set(descriptors))
            return
        ranks.append(process)
    for descriptor in descriptors[1:]:
        os.close(descriptor)
    driver, alive = socket.socket(fileno=channel), set(ranks)
    with contextlib.suppress(ConnectionError):
        _watch(driver, ranks, alive)
    _end_all(alive)
    os._exit(0)  # closes the channel, for which the driver waits


def _run_rank(log: int, channel: int, files: tuple[int, int], inherited: set[int]) -> None:
    """Take part in the gang, in a forked process."""
    os.setsid()  # a process group, so that all processes that the rank starts can be ended
    os.dup2(log, 1)
    os.dup2(log, 2)
    for descriptor in inherited - {channel, *files}:
        os.close(descriptor)
    import numpy as np

    np.random.seed()  # otherwise all ranks would draw the same numbers; Python's `random` reseeds itself
    with contextlib.suppress(EOFError, ConnectionError):  # the driver gave up
        serve(socket.socket(fileno=channel), *files)


def _watch(driver: socket.socket, ranks: list[int], alive: set[int]) -> None:
    """Report the exit code of each rank, and end ranks on request, until the driver is done."""
    wakeup, signals = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(signals)
    signal.signal(signal.SIGCHLD, lambda signum, frame: None)  # its number is in the pipe
    os.write(signals, b"\0")  # a rank may have ended already
    poll = select.poll()
    poll.register(driver, select.POLLIN)
    poll.register(wakeup, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if wakeup in ready:
            os.read(wakeup, 4096)
            for process, code in _ended(alive):
                wire.send(driver, {"position": ranks.index(process), "code": code})
        if driver.fileno() in ready:
            try:
                request, _ = wire.receive(driver)
            except EOFError:
                return
            _kill(alive & {ranks[request["end"]]})


def _ended(alive: set[int]) -> list[tuple[int, int]]:
    """Return the process and the exit code of each rank that has ended; forget orphans."""
    found = []
    with contextlib.suppress(ChildProcessError):
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            process = ended.si_pid
            if process in alive:
                _kill({process})  # its number is not used again before `waitpid`
            code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            if process in alive:
                alive.remove(process)
                found.append((process, code))
    return found


def _kill(ranks: set[int]) -> None:
    """Kill ranks with their process groups, which they have soon after they are forked."""
    for process in ranks:
        os.kill(process, signal.SIGKILL)
        end_group(process)


def _end_all(alive: set[int]) -> None:
    """Kill all ranks and everything that they started, and wait until they have ended."""
    _kill(alive)  # all at once, so that no rank reports the end of another
    for process in alive:
        os.waitpid(process, 0)
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return  # no orphans: the usual case
    kill_descendants()  # looks at all processes of the machine, which takes several milliseconds
