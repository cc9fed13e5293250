"""The thread behind a mailbox: accepts connections, and sends what sockets could not take at once."""

import contextlib
import os
import select
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from talka.channels.operations import SendOperation
from talka.channels.wire.connecting import READS_MEMORY, READS_STREAM, Connector
from talka.channels.wire.frames import FrameKind, packed_header
from talka.channels.wire.handshake import HELLO_BYTES, PROOF_BYTES, Acceptor
from talka.channels.wire.link import WireLink
from talka.channels.wire.memory import address_of, read_memory
from talka.channels.wire.streams import SocketStream, pid_of_peer
from talka.errors import FrameError
from talka.guard import Caught, logger

_HANDSHAKE_S: Final = 5.0
_MAX_HANDSHAKES: Final = 64
_PROBE: Final = struct.pack("<Q", 0x74616C6B61)


class Silence(Protocol):
    """The option that the service uses."""

    @property
    def silence_s(self) -> float | None: ...


class Served(Protocol):
    """The mailbox, as the service uses it."""

    @property
    def options(self) -> Silence: ...
    def accept(self, link: WireLink) -> None: ...
    def incoming(self) -> list[WireLink]: ...
    def fail_link(self, link: WireLink, error: Exception) -> None: ...
    def complete_sends(self, sends: Sequence[SendOperation]) -> None: ...


class Service:
    """Accepts links, checks who opens them, and flushes queues."""

    def __init__(self, mailbox: Served, connector: Connector) -> None:
        self._mailbox, self._connector = mailbox, connector
        self.refused: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._handshakes: dict[int, tuple[socket.socket, _Handshake]] = {}
        self._encrypted: dict[int, _Handshake] = {}
        self._flushing: dict[int, WireLink] = {}
        self._new: list[WireLink] = []
        self._is_closed = False
        self._epoll = select.epoll()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._listeners = {
            listener.fileno(): listener
            for listener in (connector.unix_listener, connector.tcp_listener)
            if listener is not None
        }
        for descriptor in (self._wake_read, *self._listeners):
            self._epoll.register(descriptor, select.EPOLLIN)
        self._thread = threading.Thread(target=self._run, name="talka-channels", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def flush_later(self, link: WireLink) -> None:
        """Send what waits in a link when its stream has room."""
        with self._lock:
            self._new.append(link)
        self._wake()

    def announce(self, frame: bytes, links: Sequence[WireLink]) -> None:
        """Send a header without a body to several ranks."""
        for link in links:
            with contextlib.suppress(OSError):  # the reader notices the end of the link
                if not link.writer.put([memoryview(frame)], None, copy=True):
                    self.flush_later(link)

    def forget(self, link: WireLink) -> None:
        """Stop to flush a link that is about to be closed."""
        with self._lock:
            if self._flushing.get(link.descriptor) is link:
                del self._flushing[link.descriptor]
                with contextlib.suppress(OSError, ValueError):
                    self._epoll.unregister(link.descriptor)

    def refuse(self, reason: str) -> None:
        """Count a connection or message that was dropped."""
        with self._lock:
            self.refused[reason] += 1

    def close(self) -> None:
        """End the thread."""
        self._is_closed = True
        self._wake()
        self._thread.join(5.0)
        for connection, _ in self._handshakes.values():
            connection.close()
        self._epoll.close()
        for descriptor in (self._wake_read, self._wake_write):
            os.close(descriptor)

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_write, b"w")

    def _run(self) -> None:
        alive_s = time.monotonic()
        while not self._is_closed:
            with Caught() as caught:
                ready = {descriptor for descriptor, _ in self._epoll.poll(self._wait_s())}
                self._flush(ready)
                for descriptor in ready:
                    self._accept_or_continue(descriptor)
                self._accept_encrypted()
                self._end_late_handshakes()
                silence_s = self._mailbox.options.silence_s
                if silence_s is not None and time.monotonic() - alive_s > silence_s / 5:
                    alive_s = time.monotonic()
                    self._send_alive()
            if caught.error is not None and not self._is_closed:
                logger.warning("channels: %r", caught.error, exc_info=caught.error)
                time.sleep(0.1)  # an error that repeats must not keep a core busy

    def _wait_s(self) -> float:
        limits = [link.stream.poll_s for link in self._flushing.values()]
        limits += [0.02] if self._connector.curve_streams else []
        limits += [_HANDSHAKE_S] if self._handshakes else []
        silence_s = self._mailbox.options.silence_s
        limits += [] if silence_s is None else [silence_s / 5]
        return min((limit for limit in limits if limit is not None), default=-1)

    # Queues.

    def _flush(self, ready: set[int]) -> None:
        if self._wake_read in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_read, 4096)
        with self._lock:
            new, self._new = self._new, []
            for link in new:
                if self._flushing.get(link.descriptor) is not link:
                    self._flushing[link.descriptor] = link
                    if link.stream.poll_s is None:
                        with contextlib.suppress(OSError, ValueError):  # closed: `flush` fails
                            self._epoll.register(link.descriptor, select.EPOLLOUT)
            links = [
                link
                for descriptor, link in self._flushing.items()
                if descriptor in ready or link in new or link.stream.poll_s is not None
            ]
        for link in links:
            try:
                self._mailbox.complete_sends(link.writer.flush())
            except OSError as error:
                self._mailbox.fail_link(link, error)
                self.forget(link)
                continue
            if link.writer.is_empty:
                self.forget(link)
                self._flush_if_filled(link)

    def _flush_if_filled(self, link: WireLink) -> None:
        """Continue with a link that was filled after its queue was found empty."""
        if not link.writer.is_empty:
            self.flush_later(link)

    def _send_alive(self) -> None:
        """Send a sign of life to every rank that sends to this one."""
        for link in self._mailbox.incoming():
            with contextlib.suppress(OSError):
                if link.writer.is_empty:
                    link.writer.put([memoryview(packed_header(FrameKind.ALIVE))], None, copy=True)

    # New connections.

    def _accept_or_continue(self, descriptor: int) -> None:
        if descriptor in self._listeners:
            with contextlib.suppress(BlockingIOError):
                while True:
                    connection, _ = self._listeners[descriptor].accept()
                    self._begin_handshake(connection)
        elif descriptor in self._handshakes:
            self._continue_handshake(*self._handshakes[descriptor])

    def _begin_handshake(self, connection: socket.socket) -> None:
        if len(self._handshakes) >= _MAX_HANDSHAKES:  # a rank of this job is not the slowest
            self._drop(next(iter(self._handshakes.values()))[0], "too many handshakes at once")
        connection.settimeout(0)
        handshake = _Handshake(connection.recv, connection.send, self._acceptor())
        self._handshakes[connection.fileno()] = (connection, handshake)
        self._epoll.register(connection.fileno(), select.EPOLLIN)

    def _acceptor(self) -> Acceptor:
        return Acceptor(self._connector.secret, rank=self._connector.rank)

    def _continue_handshake(self, connection: socket.socket, handshake: "_Handshake") -> None:
        try:
            while not handshake.advance():
                pass
            self._check_source(handshake.acceptor.source)
            pid = 0
            if connection.family == socket.AF_UNIX:
                pid = _readable_pid(connection)
                connection.send(READS_MEMORY if pid else READS_STREAM)
        except BlockingIOError:
            return
        except (FrameError, OSError) as error:
            self._drop(connection, error.problem if isinstance(error, FrameError) else "broken off")
            return
        self._end_handshake(connection)
        source = handshake.acceptor.source
        self._mailbox.accept(WireLink(SocketStream(connection), source, is_outgoing=False, pid=pid))

    def _check_source(self, source: int) -> None:
        if source >= self._connector.size or source == self._connector.rank:
            raise FrameError(f"claims to come from rank {source}")

    def _drop(self, connection: socket.socket, reason: str) -> None:
        self._end_handshake(connection)
        self.refuse(reason)
        connection.close()

    def _end_handshake(self, connection: socket.socket) -> None:
        self._epoll.unregister(connection.fileno())
        del self._handshakes[connection.fileno()]

    def _end_late_handshakes(self) -> None:
        now_s = time.monotonic()
        for connection, handshake in list(self._handshakes.values()):
            if now_s - handshake.start_s > _HANDSHAKE_S:
                self._drop(connection, "did not finish its handshake in time")

    def _accept_encrypted(self) -> None:
        """Continue the handshakes of encrypted streams, which wait for one rank each."""
        for peer, stream in list(self._connector.curve_streams.items()):
            if peer not in self._encrypted:
                self._encrypted[peer] = _Handshake(
                    stream.recv_now, stream.sendall, self._acceptor()
                )
            try:
                while not self._encrypted[peer].advance():
                    pass
                if self._encrypted[peer].acceptor.source != peer:
                    raise FrameError(f"does not come from rank {peer}")
            except BlockingIOError:
                continue
            except (FrameError, OSError) as error:
                self.refuse(error.problem if isinstance(error, FrameError) else "broken off")
                del self._encrypted[peer]
                continue
            source = self._encrypted.pop(peer).acceptor.source
            del self._connector.curve_streams[peer]
            stream.established()
            self._mailbox.accept(WireLink(stream, source, is_outgoing=False))


class _Handshake:
    """A connection that has not proved the secret yet."""

    def __init__(
        self,
        receive: Callable[[int], bytes],
        send: Callable[[bytes], object],
        acceptor: Acceptor,
    ) -> None:
        self._receive, self._send, self.acceptor = receive, send, acceptor
        self.start_s = time.monotonic()
        self._data = b""

    def advance(self) -> bool:
        """Receive and answer; return True when the initiator has proved the secret.

        Raises BlockingIOError if nothing has arrived.
        """
        wanted = PROOF_BYTES if self.acceptor.source >= 0 else HELLO_BYTES
        part = self._receive(wanted - len(self._data))
        if not part:
            raise FrameError("ended during the handshake")
        self._data += part
        if len(self._data) < wanted:
            return False
        data, self._data = self._data, b""
        if self.acceptor.source < 0:
            self._send(self.acceptor.answer(data))
            return False
        self.acceptor.check(data)
        return True


def _readable_pid(connection: socket.socket) -> int:
    """Return the process at the other end if this one may read its memory, otherwise 0."""
    pid = pid_of_peer(connection)
    if pid == os.getpid():
        return pid
    try:
        read_memory(pid, address_of(_PROBE), memoryview(bytearray(1)))
    except OSError as error:
        return pid if error.errno == 14 else 0  # the address is not valid there, but allowed
    return pid
