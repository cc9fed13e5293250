"""The process around a lab: `python -m talka.lab.keeper CHANNEL DRIVER`.

It enters private namespaces, forks their first process and waits. When the driver ends, it kills that
first process; if it is killed itself, the kernel does. When the first process of a process namespace
ends, the kernel kills all others in it, so nothing outlives the driver. Then it removes the control
groups of hosts with a processor quota, the only part of a lab that has a name outside of it.
"""

import os
import select
import signal
import socket
import sys
from typing import Any

from talka.engine.local import wire
from talka.errors import LabError
from talka.lab import hosts, links, namespaces, quotas

_ADVICE = (
    "Run it as root (sudo), in a container with `--privileged`, or allow user namespaces: `sysctl -w` "
    "kernel.unprivileged_userns_clone=1 (Debian), kernel.apparmor_restrict_unprivileged_userns=0 "
    "(Ubuntu) or user.max_user_namespaces=10000."
)


def main() -> None:
    """Run the lab until the driver or the first process inside the lab ends."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    channel.set_inheritable(False)
    driver = int(sys.argv[2])
    watched = os.pidfd_open(driver)
    if os.getppid() != driver:  # the driver is dead already, and its id may have been reused
        return
    try:
        build = wire.receive(channel)[0]
    except (EOFError, ConnectionError):
        return
    group = None
    try:
        for program in ("ip", "tc", "bridge"):
            links.find_program(program)
        _enter_private_namespaces()
        if any(cores is not None for cores in build["cores"]):
            group = quotas.LabGroup.create()
    except LabError as error:
        wire.send(channel, {"problem": error.args})
        return
    first = os.fork()
    if first == 0:
        os.close(watched)
        if group is not None:
            group.unlock()
        _serve(channel, build, group)
        os._exit(0)
    channel.close()
    _wait_for_either(watched, os.pidfd_open(first))
    os.kill(first, signal.SIGKILL)
    os.waitpid(first, 0)  # returns after all other processes of the lab have ended
    if group is not None:
        group.remove()


def _enter_private_namespaces() -> None:
    try:
        namespaces.enter_private_namespaces()
    except OSError as error:
        raise LabError(
            f"this machine does not allow private namespaces ({error.strerror})", _ADVICE
        ) from None


def _serve(channel: socket.socket, build: dict[str, Any], group: quotas.LabGroup | None) -> None:
    namespaces.end_with_parent()
    try:
        hosts.serve(channel, build, group)
    except LabError as error:
        wire.send(channel, {"problem": error.args})
    except OSError as error:
        wire.send(channel, {"problem": (f"the kernel refused to build it ({error})", _ADVICE)})


def _wait_for_either(*descriptors: int) -> None:
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    poll.poll()


if __name__ == "__main__":
    main()
