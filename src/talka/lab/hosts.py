"""The first process inside a lab: builds the hosts, starts ranks there, and reports their exit.

Frames from the driver: build, limit, count, start, signal, finish. All but signal are answered.
This process makes no decisions; the driver's `watch.py` decides which rank to signal and when.
"""

import contextlib
import os
import select
import signal
import socket
import subprocess
from collections.abc import Callable
from typing import Any

from talka.engine.local import wire
from talka.lab import links, namespaces
from talka.lab.base import address_of
from talka.lab.trees import signal_family

Frame = dict[str, Any]


def serve(channel: socket.socket) -> None:
    """Execute the driver's frames until it closes the channel."""
    with contextlib.suppress(EOFError, ConnectionError):
        _Hosts(channel).serve()


def hosts_file(num_hosts: int) -> str:
    """Return an /etc/hosts with the names of all hosts.

    A dual-stack socket sees the IPv4-mapped form of an address, and torch looks up its name.

    >>> print(hosts_file(1), end="")
    127.0.0.1 localhost
    ::1 localhost
    10.0.0.1 host-0
    ::ffff:10.0.0.1 host-0.lab
    """
    lines = ["127.0.0.1 localhost", "::1 localhost"]
    for host in range(num_hosts):
        address = address_of(host)
        lines += [f"{address} {name_of(host)}", f"::ffff:{address} {name_of(host)}.lab"]
    return "\n".join(lines) + "\n"


def name_of(host: int) -> str:
    """Return the host name of a host."""
    return f"host-{host}"


class _Hosts:
    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._hosts: list[namespaces.Host] = []
        self._ranks: dict[int, tuple[int, subprocess.Popen[bytes]]] = {}
        """Rank and process, by process id."""
        self._handlers: dict[str, Callable[[Frame, list[int]], Frame]] = {
            "build": self._build,
            "limit": self._limit,
            "count": self._count,
            "start": self._start,
            "finish": self._finish,
        }
        self._woken, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # an ignored signal would not wake the poll
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)

    def serve(self) -> None:
        """Handle frames and report ended ranks until the channel is closed."""
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._woken in ready:
                os.read(self._woken, 4096)
            self._reap()
            if self._channel.fileno() in ready:
                self._handle(*wire.receive(self._channel))

    def _handle(self, frame: Frame, descriptors: list[int]) -> None:
        if frame["do"] == "signal":
            for pid, (rank, _) in list(self._ranks.items()):
                if rank == frame["rank"]:
                    signal_family(pid, frame["signal"])
            return
        answer = self._handlers[frame["do"]](frame, descriptors)
        wire.send(self._channel, answer)

    def _build(self, frame: Frame, descriptors: list[int]) -> Frame:
        rates = frame["rates"]
        namespaces.mount_own(hosts_file(len(rates)))
        links.disable_ipv6()
        self._hosts = [namespaces.Host(name_of(host)) for host in range(len(rates))]
        networks = [host.network for host in self._hosts]
        links.run_batch("ip", links.bridge_commands(networks), descriptors=networks)
        for number, host in enumerate(self._hosts):
            with host.visit():
                links.run_batch("ip", links.host_commands(number))
        self._set_rates("add", rates)
        return {}

    def _limit(self, frame: Frame, descriptors: list[int]) -> Frame:
        self._set_rates("change", frame["rates"])
        return {}

    def _set_rates(self, verb: str, rates: list[float]) -> None:
        links.run_batch("tc", links.receiving_limits(verb, rates))
        for host, rate in zip(self._hosts, rates, strict=True):
            with host.visit():
                links.run_batch("tc", [links.limit_command(verb, links.INTERFACE, rate)])

    def _count(self, frame: Frame, descriptors: list[int]) -> Frame:
        at_bridge = links.counted_bytes()
        traffic = []
        for number, host in enumerate(self._hosts):
            with host.visit():
                sent = links.counted_bytes()[links.INTERFACE]
            traffic.append(links.Traffic(sent, links.received_bytes(at_bridge, number)))
        return {"traffic": traffic}

    def _start(self, frame: Frame, descriptors: list[int]) -> Frame:
        [output] = descriptors
        try:
            process = subprocess.Popen(
                frame["command"],
                env=frame["environment"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=self._hosts[frame["host"]].enter,  # this process has one thread
            )
        except OSError as error:
            return {"cannot_start": str(error)}
        finally:
            os.close(output)
        self._ranks[process.pid] = (frame["rank"], process)
        return {}

    def _reap(self) -> None:
        """Report ranks that ended. Orphans are reaped here too, as this is the first process."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0] != 0:
                pid, status = ended
                if pid in self._ranks:
                    rank, process = self._ranks.pop(pid)
                    process.returncode = os.waitstatus_to_exitcode(status)
                    wire.send(self._channel, {"ended": rank, "code": process.returncode})

    def _finish(self, frame: Frame, descriptors: list[int]) -> Frame:
        """Kill what the ranks left running: every process in the lab except this one."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, _ = os.waitpid(-1, 0)
                if pid in self._ranks:
                    self._ranks.pop(pid)[1].returncode = -signal.SIGKILL
        return {}
