"""The process that forks the ranks of gangs; `keeper.py` starts it.

    load torch once -> for each gang: fork its leader -> the leader forks the ranks

Loading torch takes most of a second. Forked ranks have it already and share its memory. This process
computes nothing and starts no thread, so that it is safe to fork. It stays for later gangs.
"""

import gc
import importlib
import os
import signal
import socket
import sys

from talka.engine.local import wire
from talka.engine.local.lifeline import end_with_parent


def main() -> None:
    """Load what ranks need, then fork a leader for each request of the driver."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    try:
        hello, _ = wire.receive(channel)
        sys.path[:] = hello["path"]
        for module in (*hello["preload"], "talka.engine.gangs.leader"):
            importlib.import_module(module)
        gc.collect()
        gc.freeze()  # otherwise a collection in a rank would copy the pages of all objects
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel forgets leaders that ended
        server = os.getpid()
        while True:
            _, descriptors = wire.receive(channel)
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                end_with_parent(server)
                channel.close()
                from talka.engine.gangs.leader import lead

                lead(descriptors)
                return
            for descriptor in descriptors:
                os.close(descriptor)
    except (EOFError, ConnectionError):
        return  # the driver does not need it any more
