"""The process that forks the ranks of a local gang; `keeper.py` starts it.

    load torch once -> fork a process for each rank -> report how each of them ended

Loading torch takes seconds. Forked ranks have it already and share its memory. This process computes
nothing and starts no thread, so that it is safe to fork.
"""

import os
import select
import socket
import sys

from talka.engine.local import wire
from talka.engine.local.lifeline import end_with_parent


def main() -> None:
    """Load torch, fork the ranks and report their exit codes."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    try:
        hello, descriptors = wire.receive(channel)
    except (EOFError, ConnectionError):
        return  # the driver gave up
    sys.path[:] = hello["path"]
    import torch.distributed  # noqa: F401  # loaded here once, for all ranks

    import talka.engine.gangs.member  # noqa: F401

    logs, channels = descriptors[::2], descriptors[1::2]
    fork_server, ranks, store = os.getpid(), [], os.memfd_create("talka-store")
    for rank in range(len(logs)):
        process = os.fork()
        if process == 0:
            channel.close()
            end_with_parent(fork_server)
            _run_rank(logs[rank], channels[rank], store, set(descriptors))
            return
        ranks.append(process)
    for descriptor in descriptors:
        os.close(descriptor)
    _report(channel, ranks)


def _run_rank(log: int, channel: int, store: int, inherited: set[int]) -> None:
    """Take part in the gang, in a forked process."""
    os.setsid()  # a process group, so that all processes that the rank starts can be ended
    os.dup2(log, 1)
    os.dup2(log, 2)
    for descriptor in inherited - {channel}:
        os.close(descriptor)
    import numpy as np

    from talka.engine.gangs.member import serve

    np.random.seed()  # otherwise all ranks would draw the same numbers; Python's `random` reseeds itself
    serve(socket.socket(fileno=channel), store)


def _report(channel: socket.socket, ranks: list[int]) -> None:
    """Send the driver the process ids of the ranks, then each exit code."""
    poll, process_of = select.poll(), {os.pidfd_open(process): process for process in ranks}
    wire.send(channel, {"ranks": ranks}, list(process_of))
    for descriptor in process_of:
        poll.register(descriptor, select.POLLIN)
    while process_of:
        for descriptor, _ in poll.poll():
            poll.unregister(descriptor)
            process = process_of.pop(descriptor)
            code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            wire.send(channel, {"rank": ranks.index(process), "code": code})
