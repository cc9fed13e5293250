"""Finding other ranks and opening links to them."""

import contextlib
import os
import secrets
import socket
import time
from collections.abc import Callable
from typing import Any, Final

import msgpack

from talka.channels.rendezvous import Rendezvous
from talka.channels.wire.curve import CurveKeys, CurveStream
from talka.channels.wire.handshake import ANSWER_BYTES, Initiator
from talka.channels.wire.link import WireLink
from talka.channels.wire.memory import allow_reading
from talka.channels.wire.streams import (
    ByteStream,
    Location,
    SocketStream,
    connected,
    listen_tcp,
    listen_unix,
    machine_id,
    receive_exactly,
)
from talka.errors import ConnectionFailedError, FrameError, LostWorkerError

READS_MEMORY, READS_STREAM = b"M", b"S"
_HANDSHAKE_S: Final = 10.0
_RETRY_S: Final = 0.05
_REFUSED_S: Final = 2.0
"""Seconds to try again at a machine that answers that nobody listens: the rank has ended."""


class Connector:
    """The listeners of this process, and the locations of the others."""

    def __init__(
        self,
        rank: int,
        size: int,
        rendezvous: Rendezvous,
        secret: bytes,
        address: str,
        options: Any,
    ) -> None:
        self.rank, self.size, self.secret = rank, size, secret
        self._rendezvous, self._options = rendezvous, options
        self._locations: dict[int, Location] = {}
        allow_reading()
        name = f"talka-{os.getpid()}-{secrets.token_hex(8)}"
        self.unix_listener = listen_unix(name)
        self.tcp_listener: socket.socket | None = None
        self.curve: CurveKeys | None = None
        self.curve_streams: dict[int, CurveStream] = {}
        """Encrypted streams that wait for their rank to connect."""
        if options.encrypt:
            self.curve = CurveKeys.new()
            self.curve_streams = {
                peer: CurveStream.listening(self.curve, address)
                for peer in range(size)
                if peer != rank
            }
        else:
            self.tcp_listener = listen_tcp(address)
        own = Location(
            machine_id(),
            name,
            address,
            0 if self.tcp_listener is None else self.tcp_listener.getsockname()[1],
            b"" if self.curve is None else self.curve.public,
            {peer: stream.port for peer, stream in self.curve_streams.items()},
        )
        self._locations[rank] = own
        rendezvous.set(_key(rank), msgpack.packb(own))

    def location_of(self, rank: int) -> Location:
        """Return where a rank listens; wait until it has published that."""
        location = self._locations.get(rank)
        if location is None:
            data = self._rendezvous.get(_key(rank), timeout_s=self._options.connect_s)
            location = Location(*msgpack.unpackb(data, strict_map_key=False))
            self._locations[rank] = location
        return location

    def is_local(self, rank: int) -> bool:
        """Return whether a rank runs on this machine and in the same namespaces."""
        return self.location_of(rank).machine == self._locations[self.rank].machine

    def open_link(self, rank: int, is_lost: Callable[[], bool]) -> WireLink:
        """Connect to a rank and prove the secret; retry until it listens.

        Raises ConnectionFailedError, or LostWorkerError if it has ended.
        """
        location, is_local = self.location_of(rank), self.is_local(rank)
        start_s = time.monotonic()
        deadline = start_s + self._options.connect_s
        while True:
            try:
                return self._opened(rank, location, is_local=is_local)
            except ConnectionRefusedError as error:
                if is_local or is_lost():  # it has listened before it published its location
                    raise LostWorkerError((rank,), "it does not listen any more") from error
                deadline = min(deadline, start_s + _REFUSED_S)
                problem: Exception = error
            except (OSError, FrameError) as error:
                problem = error
            if is_lost():
                raise LostWorkerError((rank,), "it has ended") from problem
            if isinstance(problem, FrameError) or time.monotonic() > deadline:
                raise self._failure(rank, location, problem, is_local=is_local) from problem
            time.sleep(_RETRY_S)

    def _opened(self, rank: int, location: Location, *, is_local: bool) -> WireLink:
        initiator = Initiator(self.secret, rank=self.rank, to=rank)
        if self.curve is not None and not is_local:
            curve = CurveStream.connected(
                self.curve, location.curve_key, location.host, location.curve_ports[self.rank]
            )
            with contextlib.ExitStack() as on_failure:
                on_failure.callback(curve.close)
                curve.sendall(initiator.hello)
                curve.sendall(initiator.proof(receive_exactly(curve, ANSWER_BYTES)))
                on_failure.pop_all()
            return WireLink(curve, rank, is_outgoing=True)
        connection = connected(location, is_local=is_local, timeout_s=_HANDSHAKE_S)
        with contextlib.ExitStack() as on_failure:
            on_failure.callback(connection.close)
            connection.sendall(initiator.hello)
            connection.sendall(initiator.proof(receive_exactly(connection, ANSWER_BYTES)))
            reads_memory = is_local and receive_exactly(connection, 1) == READS_MEMORY
            on_failure.pop_all()
        stream: ByteStream = SocketStream(connection)
        return WireLink(
            stream, rank, is_outgoing=True, pid=os.getpid() if reads_memory else 0, is_near=is_local
        )

    def _failure(
        self, rank: int, location: Location, problem: Exception, *, is_local: bool
    ) -> ConnectionFailedError:
        port = location.curve_ports.get(self.rank, location.port)
        where = f"unix {location.unix_name}" if is_local else f"tcp {location.host}:{port}"
        advice = "Check that its machine can be reached and that no firewall blocks the port."
        if not is_local and location.host.startswith("127."):
            advice = (
                f"That rank advertises {location.host}, an address that only its own machine can "
                "reach: start it with an address of its network."
            )
        text = (problem.strerror if isinstance(problem, OSError) else None) or str(problem)
        return ConnectionFailedError(rank, where, text, advice)

    def close(self) -> None:
        """Stop listening."""
        self.unix_listener.close()
        if self.tcp_listener is not None:
            self.tcp_listener.close()
        for stream in self.curve_streams.values():
            stream.close()
        if self.curve is not None:
            self.curve.close()


def _key(rank: int) -> str:
    return f"channels/{rank}"
