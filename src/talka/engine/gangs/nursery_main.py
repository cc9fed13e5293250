"""Where the ranks of a local gang come from: a process that `keeper.py` forks.

    load torch once -> fork a process for each rank -> say how each of them ended

Loading torch is all that a rank does for its first seconds. Forked ranks have it, and share the
memory that it takes. Nothing is computed here and no thread is started, so that there is nothing a
fork could break.
"""

import os
import select
import socket
import sys

from talka.engine.local import wire
from talka.engine.local.lifeline import end_with_parent


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    try:
        hello, descriptors = wire.receive(channel)
    except (EOFError, ConnectionError):
        return  # the driver gave up
    sys.path[:] = hello["path"]
    import torch.distributed  # noqa: F401  # what this process is for

    import talka.engine.gangs.member  # noqa: F401

    logs, channels = descriptors[::2], descriptors[1::2]
    nursery, ranks, store = os.getpid(), [], os.memfd_create("talka-store")
    for rank in range(len(logs)):
        process = os.fork()
        if process == 0:
            channel.close()
            end_with_parent(nursery)
            _be_a_rank(logs[rank], channels[rank], store, set(descriptors))
            return
        ranks.append(process)
    for descriptor in descriptors:
        os.close(descriptor)
    _report(channel, ranks)


def _be_a_rank(log: int, channel: int, store: int, of_all: set[int]) -> None:
    os.setsid()  # it leads a process group, with which all that it starts is ended
    os.dup2(log, 1)
    os.dup2(log, 2)
    for descriptor in of_all - {channel}:
        os.close(descriptor)
    import numpy as np

    from talka.engine.gangs.member import serve

    np.random.seed()  # else all ranks would draw the same numbers; Python reseeds its own
    serve(socket.socket(fileno=channel), store)


def _report(channel: socket.socket, ranks: list[int]) -> None:
    """Send the driver their process ids, then how each ended."""
    poll, of_descriptor = select.poll(), {os.pidfd_open(process): process for process in ranks}
    wire.send(channel, {"ranks": ranks}, list(of_descriptor))
    for descriptor in of_descriptor:
        poll.register(descriptor, select.POLLIN)
    while of_descriptor:
        for descriptor, _ in poll.poll():
            poll.unregister(descriptor)
            process = of_descriptor.pop(descriptor)
            code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            wire.send(channel, {"rank": ranks.index(process), "code": code})
