"""Streams of bytes between two processes: Unix sockets on one machine, TCP between machines.

Nothing here blocks, except `connected`. A Unix socket has an abstract name, which is not a file:
the kernel removes it with its process.
"""

import contextlib
import os
import socket
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from talka.errors import FrameError

_UNIX_BUFFER_BYTES: Final = 1 << 20
_KEEPALIVE_S: Final = 1
_NUM_KEEPALIVES: Final = 5
_UNACKNOWLEDGED_MS: Final = 8_000
_BACKLOG: Final = 512
_MAX_VIEWS: Final = 64


class ByteStream(Protocol):
    """One end of a connection."""

    poll_s: float | None
    """Seconds after which a waiting thread looks again; None if the descriptor is enough."""

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when bytes arrive or the other end closes."""
        ...

    def send(self, views: list[memoryview]) -> int:
        """Hand bytes to the kernel and return how many; 0 if it has no room now.

        Raises OSError if the connection is gone.
        """
        ...

    def recv_into(self, view: memoryview) -> int:
        """Receive some bytes and return how many; 0 at the end of the stream.

        Raises BlockingIOError if there are none now, and OSError if the connection is gone.
        """
        ...

    def close(self) -> None:
        """Close this end at once, also in the middle of a message."""
        ...


class SocketStream:
    """A stream over a connected socket."""

    poll_s: float | None = None

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(0)
        if connection.family == socket.AF_INET:
            keep_alive(connection)
        else:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNIX_BUFFER_BYTES)
        self._socket = connection
        self.recv_into = connection.recv_into

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, views: list[memoryview]) -> int:
        try:
            return self._socket.sendmsg(views[:_MAX_VIEWS])
        except BlockingIOError:
            return 0

    def close(self) -> None:
        self._socket.close()


def keep_alive(connection: socket.socket) -> None:
    """Send small messages at once, and end a TCP connection whose other machine is gone."""
    options = {
        socket.TCP_NODELAY: 1,
        socket.TCP_KEEPIDLE: _KEEPALIVE_S,
        socket.TCP_KEEPINTVL: _KEEPALIVE_S,
        socket.TCP_KEEPCNT: _NUM_KEEPALIVES,
        socket.TCP_USER_TIMEOUT: _UNACKNOWLEDGED_MS,
    }
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in options.items():
        connection.setsockopt(socket.IPPROTO_TCP, option, value)


class Location(NamedTuple):
    """Addresses of a process, as it publishes them at the rendezvous."""

    machine: str
    """Machine, network namespace, process namespace and user: equal if a Unix socket connects."""
    unix_name: str
    host: str
    port: int
    """TCP port; 0 if it does not listen beyond its machine."""
    curve_key: bytes
    """Public key; empty without encryption."""
    curve_ports: dict[int, int]
    """TCP port for each other rank, if messages between machines are encrypted."""


def machine_id() -> str:
    """Return an identifier that processes share if Unix sockets and memory connect them."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    spaces = [os.readlink(f"/proc/self/ns/{kind}") for kind in ("net", "pid")]
    return " ".join([boot, *spaces, str(os.geteuid())])


def listen_unix(name: str) -> socket.socket:
    """Listen at an abstract name."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with contextlib.ExitStack() as on_failure:
        on_failure.callback(listener.close)
        listener.bind("\0" + name)
        listener.listen(_BACKLOG)
        listener.settimeout(0)
        on_failure.pop_all()
    return listener


def listen_tcp(host: str) -> socket.socket:
    """Listen at a free port of one address."""
    listener = socket.create_server((host, 0), backlog=_BACKLOG)
    listener.settimeout(0)
    return listener


def connected(location: Location, *, is_local: bool, timeout_s: float) -> socket.socket:
    """Return a socket that is connected to another process; OSError if that fails."""
    if not is_local:
        return socket.create_connection((location.host, location.port), timeout=timeout_s)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with contextlib.ExitStack() as on_failure:
        on_failure.callback(connection.close)
        connection.settimeout(timeout_s)
        connection.connect("\0" + location.unix_name)
        on_failure.pop_all()
    return connection


def pid_of_peer(connection: socket.socket) -> int:
    """Return the process id at the other end of a Unix socket."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[:4], "little")


def receive_exactly(connection: Any, num_bytes: int) -> bytes:
    """Receive this many bytes from a blocking socket; FrameError at the end of the stream."""
    data = b""
    while len(data) < num_bytes:
        part = connection.recv(num_bytes - len(data))
        if not part:
            raise FrameError("ended during the handshake")
        data += part
    return data
