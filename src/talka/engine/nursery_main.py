"""Where the ranks of a local gang come from: `python -m talka.engine.nursery_main CHANNEL DRIVER`.

    load torch once -> fork a process for each rank -> say how each of them ended

Loading torch is all that a rank does for its first seconds. Forked ranks have it, and share the
memory that it takes. Nothing is computed here and no thread is started, so that there is nothing a
fork could break.
"""

import os
import select
import signal
import socket
import sys

from talka.engine import wire
from talka.engine.lifeline import end_group, end_with, watched_driver


def main() -> None:
    channel, driver = socket.socket(fileno=int(sys.argv[1])), watched_driver(int(sys.argv[2]))
    os.set_inheritable(channel.fileno(), False)
    poll = select.poll()
    poll.register(driver, select.POLLIN)
    poll.register(channel, select.POLLIN)
    if any(descriptor == driver for descriptor, _ in poll.poll()):
        return
    hello, descriptors = wire.receive(channel)
    sys.path[:] = hello["path"]
    import torch.distributed  # noqa: F401  # what this process is for

    import talka.engine.gang_member  # noqa: F401

    logs, channels = descriptors[::2], descriptors[1::2]
    ranks = []
    for rank in range(len(logs)):
        process = os.fork()
        if process == 0:
            channel.close()
            _be_a_rank(driver, logs[rank], channels[rank], set(descriptors))
            return
        ranks.append(process)
    for descriptor in descriptors:
        os.close(descriptor)
    _report(channel, driver, ranks)


def _be_a_rank(driver: int, log: int, channel: int, of_all: set[int]) -> None:
    os.setsid()  # it leads a process group, with which all that it starts is ended
    end_with(driver)
    os.dup2(log, 1)
    os.dup2(log, 2)
    for descriptor in of_all - {channel}:
        os.close(descriptor)
    import numpy as np

    from talka.engine.gang_member import serve

    np.random.seed()  # else all ranks would draw the same numbers; Python reseeds its own
    serve(socket.socket(fileno=channel))


def _report(channel: socket.socket, driver: int, ranks: list[int]) -> None:
    """Tell the driver who they are, then how each ended; end them if the driver does."""
    poll, of_descriptor = select.poll(), {os.pidfd_open(process): process for process in ranks}
    wire.send(channel, {"ranks": ranks}, list(of_descriptor))
    for descriptor in (driver, *of_descriptor):
        poll.register(descriptor, select.POLLIN)
    while of_descriptor:
        for descriptor, _ in poll.poll():
            if descriptor == driver:
                for process in ranks:
                    end_group(process)
                os.killpg(0, signal.SIGKILL)
            poll.unregister(descriptor)
            process = of_descriptor.pop(descriptor)
            code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            wire.send(channel, {"rank": ranks.index(process), "code": code})


if __name__ == "__main__":
    main()
