"""The first process inside a lab: builds the hosts, starts ranks there, and reports their exit.

Frames from the driver: build, limit, connect, count, start, signal, finish. All but signal are answered.
This process makes no decisions; the driver's `watch.py` decides which rank to signal and when. With a
latency, it also starts the relay, and starts it again after `finish`, which kills everything.
"""

import contextlib
import functools
import os
import select
import signal
import socket
import subprocess
from collections.abc import Callable
from typing import Any

from talka.engine.local import wire
from talka.engine.local.processes import how_it_ended
from talka.errors import LabError
from talka.lab import links, namespaces, quotas, relay
from talka.lab.base import address_of
from talka.lab.frames import MAX_PACKET_BYTES
from talka.lab.trees import signal_family

Frame = dict[str, Any]


def serve(channel: socket.socket, build: Frame, group: quotas.LabGroup | None) -> None:
    """Build the hosts, and execute the driver's frames until it closes the channel.

    `group` is the control group of the lab; None if no host has a quota.
    """
    with contextlib.suppress(EOFError, ConnectionError):
        _Hosts(channel).serve(build, group)


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
        self._members: dict[int, int] = {}
        """Descriptors for joining the control group of a host, by host."""
        self._late: socket.socket | None = None
        """Socket through which the relay receives and sends; None without a latency."""
        self._latency_s = 0.0
        self._relay: int | None = None
        self._handlers: dict[str, Callable[[Frame, list[int]], Frame]] = {
            "limit": self._limit,
            "connect": self._connect,
            "count": self._count,
            "start": self._start,
            "finish": self._finish,
        }
        self._woken, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # an ignored signal would not wake the poll
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)

    def serve(self, build: Frame, group: quotas.LabGroup | None) -> None:
        """Handle frames and report ended ranks until the channel is closed."""
        self._build(build, group)
        wire.send(self._channel, {})
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

    def _build(self, frame: Frame, group: quotas.LabGroup | None) -> None:
        rates = frame["rates"]
        namespaces.mount_own(hosts_file(len(rates)))
        links.disable_ipv6()
        self._hosts = [namespaces.Host(name_of(host)) for host in range(len(rates))]
        networks = [host.network for host in self._hosts]
        links.run_batch("ip", links.bridge_commands(networks), descriptors=networks)
        for number, host in enumerate(self._hosts):
            with host.visit():
                links.run_batch("ip", links.host_commands(number))
        if frame["latency_s"]:
            links.run_batch("ip", links.late_commands())
            self._latency_s = frame["latency_s"]
            self._late = relay.open_socket(links.RELAY_DEVICE)
        links.connect(range(len(rates)), is_late=self._late is not None)
        self._set_rates("add", rates)
        if group is not None:
            for number, cores in enumerate(frame["cores"]):
                if cores is not None:
                    self._members[number] = group.limit(number, cores)
        self._start_relay()

    def _limit(self, frame: Frame, descriptors: list[int]) -> Frame:
        self._set_rates("change", frame["rates"])
        return {}

    def _set_rates(self, verb: str, rates: list[float]) -> None:
        links.run_batch("tc", links.receiving_limits(verb, rates))
        for host, rate in zip(self._hosts, rates, strict=True):
            with host.visit():
                links.run_batch("tc", [links.limit_command(verb, links.INTERFACE, rate)])
                if self._late is not None:
                    links.run_batch("ip", [links.packet_command(rate, MAX_PACKET_BYTES)])

    def _connect(self, frame: Frame, descriptors: list[int]) -> Frame:
        """Connect the link of a host to the bridge, or cut it."""
        is_late = self._late is not None
        if frame["is_connected"]:
            links.connect([frame["host"]], is_late=is_late)
        else:
            links.cut(frame["host"], is_late=is_late)
        return {}

    def _start_relay(self) -> None:
        if self._late is not None:
            self._relay = relay.start(self._late, self._latency_s, len(self._hosts))

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
                preexec_fn=functools.partial(self._enter, frame["host"]),  # one thread: it is safe
            )
        except OSError as error:
            return {"cannot_start": str(error)}
        finally:
            os.close(output)
        self._ranks[process.pid] = (frame["rank"], process)
        return {}

    def _enter(self, host: int) -> None:
        """Move this process, which will be a rank, to a host."""
        if host in self._members:
            quotas.join(self._members[host])
        self._hosts[host].enter()

    def _reap(self) -> None:
        """Report ranks that ended. Orphans are reaped here too, as this is the first process."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0] != 0:
                pid, status = ended
                if pid == self._relay:
                    code = os.waitstatus_to_exitcode(status)
                    how = how_it_ended(code) if code <= 0 else os.strerror(code)
                    problem = f"the relay that delays packets ended ({how})"
                    raise LabError(problem, "Start another lab; without a latency it has no relay.")
                if pid in self._ranks:
                    rank, process = self._ranks.pop(pid)
                    process.returncode = os.waitstatus_to_exitcode(status)
                    wire.send(self._channel, {"ended": rank, "code": process.returncode})

    def _finish(self, frame: Frame, descriptors: list[int]) -> Frame:
        """Kill what the ranks left running: every process in the lab except this one.

        The relay is killed too. What it held was on the way to processes that have ended.
        """
        self._relay = None
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, _ = os.waitpid(-1, 0)
                if pid in self._ranks:
                    self._ranks.pop(pid)[1].returncode = -signal.SIGKILL
        self._start_relay()
        return {}
