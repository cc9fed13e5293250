"""All messages of one process: sends to other ranks, and receives from them.

    send     the calling thread writes to the socket; what the kernel does not take, the service thread does
    receive  a thread that waits reads all sockets, for itself and for other threads that wait

So a short message needs no thread but those of its sender and its receiver. Nothing is read while
nobody waits: the buffers of sockets fill up, then those of senders, then sends block.
"""

import contextlib
import itertools
import os
import secrets
import select
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from talka.channels.connecting import Connector
from talka.channels.frames import (
    MAX_DESCRIPTION_BYTES,
    MAX_MESSAGE_BYTES,
    REMOTE_BODY,
    FrameHeader,
    FrameKind,
    packed_header,
)
from talka.channels.link import Link, Pause
from talka.channels.matching import Arrival, Matching
from talka.channels.memory import address_of, read_memory
from talka.channels.operations import Buffer, Operation, Receive, Send, new_buffer
from talka.channels.rendezvous import Rendezvous
from talka.channels.service import Service
from talka.errors import (
    ChannelClosedError,
    ChannelTimeoutError,
    FrameError,
    InvalidValueError,
    LostWorkerError,
)

_CLOSE_S: Final = 5.0
_REMOTE_BYTES: Final = 1 << 16
"""Bytes from which a body is read from the sender's memory: below, a second wake-up costs more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MailboxOptions:
    """Limits and security of a mailbox; all processes of a job should have the same."""

    buffer_bytes: int = 1 << 26
    """Bytes that may wait for one receiver before `send` blocks."""
    inbox_bytes: int = 1 << 28
    """Bytes of messages that nobody awaits, from which on links are not read."""
    max_message_bytes: int = MAX_MESSAGE_BYTES
    """Largest body; a longer one is refused before memory is allocated for it."""
    silence_s: float | None = None
    """Seconds without any sign of life after which a rank counts as lost; None for no limit."""
    encrypt: bool = False
    """Encrypt messages between machines (CURVE, by ZeroMQ)."""
    connect_s: float = 60.0
    """Seconds to wait for another rank to appear."""


class Mailbox:
    """The messages of one rank. All methods may be called from several threads."""

    def __init__(
        self,
        rank: int,
        size: int,
        rendezvous: Rendezvous,
        secret: bytes,
        *,
        address: str = "127.0.0.1",
        options: MailboxOptions | None = None,
    ) -> None:
        self.rank, self.size = rank, size
        self.options = MailboxOptions() if options is None else options
        self.lost: dict[int, str] = {}
        """How each lost rank ended."""
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._num_waiting = 0
        self._is_driven = False
        self.is_closed = False
        self._matching = Matching()
        self._outgoing: dict[int, Link] = {}
        self._incoming: dict[int, Link] = {}
        self._by_descriptor: dict[int, Link] = {}
        self._current: dict[Link, Receive | Arrival | None] = {}
        self._paused: set[Link] = set()
        self._resumed: set[Link] = set()
        self._polled: set[Link] = set()
        """Links whose descriptor alone does not tell whether bytes have arrived."""
        self._listeners: list[Callable[[int, str], object]] = []
        self._numbers = itertools.count(1)
        self._num_groups: dict[tuple[tuple[int, ...], str], itertools.count[int]] = {}
        self._epoll = select.epoll()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._epoll.register(self._wake_read, select.EPOLLIN)
        self._connecting = threading.Lock()
        self._connector = Connector(rank, size, rendezvous, secret, address, self.options)
        self._service = Service(self, self._connector)

    # What callers use.

    def post_send(
        self,
        to: int,
        body: Buffer,
        *,
        tag: int,
        context: int = 0,
        description: bytes = b"",
        copy: bool = False,
    ) -> Send:
        """Start to send bytes. Unless `copy`, they must not change before the send is done."""
        if len(description) > MAX_DESCRIPTION_BYTES - REMOTE_BODY.size:
            raise InvalidValueError(
                "description of a message", len(description), "at most 65,520 bytes"
            )
        if len(body) > self.options.max_message_bytes:
            allowed = f"at most {self.options.max_message_bytes} bytes (max_message_bytes)"
            raise InvalidValueError("length of a message", len(body), allowed)
        send = Send(self, to, tag, len(body))
        if to == self.rank:
            self._send_to_self(send, body, context, description)
            return send
        link = self.link_to(to)
        kind = FrameKind.DATA
        views = [body] if len(body) else []
        if link.pid and len(body) >= _REMOTE_BYTES:
            kind, views = FrameKind.REMOTE, []
            send.body = memoryview(bytearray(body)) if copy else body
            number = next(self._numbers)
            description = REMOTE_BODY.pack(address_of(send.body), number) + description
            with self._lock:
                link.unread[number] = send
        header = packed_header(
            kind,
            description_bytes=len(description),
            context=context,
            tag=tag,
            body_bytes=len(body),
        )
        with self._lock:
            link.pending_bytes += len(body)
        try:
            is_written = link.writer.put(
                [memoryview(header + description), *views], send, copy=copy
            )
        except OSError as error:
            self.lose(to, _reason(error))
            is_written = True
        if not is_written:
            self._service.flush_later(link)
        if is_written and kind is FrameKind.DATA:
            with self._lock:
                self._complete(send)
        if to in self.lost:
            self._fail_sends(link)
        return send

    def post_receive(
        self, source: int | None, *, tag: int, context: int = 0, into: Buffer | None = None
    ) -> Receive:
        """Start to receive a message from a rank, or from any; `into` is memory for its body."""
        self._check_open()
        receive = Receive(self, source, context, tag, into)
        if source is not None and source != self.rank and source not in self.lost:
            with contextlib.suppress(LostWorkerError):
                self.link_to(source)  # its end tells that the rank has ended
        with self._lock:
            arrival = self._matching.post(receive)
            if arrival is None:
                self._fail_if_hopeless(receive)
            elif arrival.data is not None and not arrival.is_complete:
                receive.source, receive.description = arrival.source, arrival.description
                arrival.receive = receive
            self._resume()
        if arrival is not None and arrival.remote is not None:
            self._take_remote(receive, arrival)
        elif arrival is not None and arrival.is_complete:
            self._take(receive, arrival)
        return receive

    def wait_for_room(self, to: int, num_bytes: int, timeout_s: float | None = None) -> None:
        """Wait until the buffer for a rank has room for a message of this length."""
        if to == self.rank:
            return
        link, limit = self.link_to(to), self.options.buffer_bytes
        deadline = _deadline(timeout_s)
        while link.pending_bytes and link.pending_bytes + num_bytes > limit and to not in self.lost:
            left_s = _left(deadline)
            if left_s is not None and left_s <= 0:
                assert timeout_s is not None
                raise ChannelTimeoutError(f"send to rank {to}, which does not receive", timeout_s)
            self._progress(
                lambda: link.pending_bytes + num_bytes <= limit or to in self.lost, left_s
            )

    def wait(self, operation: Operation, timeout_s: float | None = None) -> None:
        """Wait until an operation is done; it keeps its error."""
        deadline = _deadline(timeout_s)
        operation.is_waited_for = True
        while not operation.is_done:
            left_s = _left(deadline)
            if left_s is not None and left_s <= 0:
                if isinstance(operation, Receive):
                    with self._lock:
                        self._matching.withdraw(operation)
                assert timeout_s is not None
                raise ChannelTimeoutError(str(operation), timeout_s)
            self._check_silence(operation)
            self._progress(lambda: operation.is_done, left_s)

    def add_listener(self, listener: Callable[[int, str], object]) -> None:
        """Call `listener(rank, how)` for each lost rank, also for those already lost."""
        with self._lock:
            self._listeners.append(listener)
            lost = list(self.lost.items())
        for rank, how in lost:
            listener(rank, how)

    @property
    def refused(self) -> dict[str, int]:
        """Number of connections and messages that were dropped, by reason."""
        return dict(self._service.refused)

    def next_of(self, ranks: tuple[int, ...], name: str) -> int:
        """Return how many groups of these ranks and this name were opened before."""
        with self._lock:
            return next(self._num_groups.setdefault((ranks, name), itertools.count()))

    def forget(self, context: int) -> None:
        """Drop receives and messages of a group that is closed."""
        with self._lock:
            self._matching.forget(context)

    def machines(self, ranks: Sequence[int]) -> list[str]:
        """Return an identifier of the machine of each rank."""
        return [self._connector.location_of(rank).machine for rank in ranks]

    def close(self) -> None:
        """Wait until messages are sent, then close all connections. May be called twice."""
        if self.is_closed:
            return
        deadline = time.monotonic() + _CLOSE_S
        while any(link.pending_bytes for link in self._living()) and time.monotonic() < deadline:
            self._progress(lambda: False, 0.02)
        for link in self._living():
            with contextlib.suppress(OSError):
                link.writer.put([memoryview(packed_header(FrameKind.BYE))], None, copy=True)
        self._abandon()

    def _abandon(self) -> None:
        self.is_closed = True
        self._service.close()
        with self._lock:
            links = list(self._by_descriptor.values())
            self._by_descriptor.clear()
        for link in links:
            link.stream.close()
        self._epoll.close()
        self._connector.close()
        for descriptor in (self._wake_read, self._wake_write):
            os.close(descriptor)

    # Links.

    def link_to(self, rank: int) -> Link:
        """Return the link for messages to a rank; open it if there is none."""
        link = self._outgoing.get(rank)
        if link is not None:
            return link
        self._check_open()
        if not 0 <= rank < self.size or rank == self.rank:
            raise InvalidValueError("rank", rank, f"another rank, from 0 to {self.size - 1}")
        with self._connecting:
            link = self._outgoing.get(rank)
            if link is None:
                if rank in self.lost:
                    raise LostWorkerError((rank,), self.lost[rank])
                link = self._connector.open_link(rank, lambda: rank in self.lost)
                self._outgoing[rank] = link
                self._add(link)
            return link

    def accept(self, link: Link) -> None:
        """Read messages from a new link; the service calls this after the handshake."""
        self._incoming[link.peer] = link
        self._add(link)

    def _add(self, link: Link) -> None:
        with self._lock:
            self._by_descriptor[link.descriptor] = link
            if link.stream.poll_s is not None:
                self._polled.add(link)
        self._epoll.register(link.descriptor, select.EPOLLIN | select.EPOLLRDHUP)
        if link.stream.poll_s is not None:
            self._wake()

    def lose(self, rank: int, how: str) -> None:
        """Record that a rank has ended: operations that need it fail, at once or after its last message."""
        with self._lock:
            if rank in self.lost or rank == self.rank or self.is_closed:
                return
            self.lost[rank] = how
            incoming = self._incoming.get(rank)
            is_read = incoming is None or incoming.descriptor not in self._by_descriptor
            if is_read:
                self._fail_receives(rank)
            listeners = list(self._listeners)
        outgoing = self._outgoing.get(rank)
        if outgoing is not None:
            self._fail_sends(outgoing)
        self._wake()
        for listener in listeners:
            listener(rank, how)

    def fail_link(self, link: Link, error: Exception) -> None:
        """Close a link that ended or broke, and lose its rank."""
        with self._lock:
            if self._by_descriptor.pop(link.descriptor, None) is None:
                return
            self._polled.discard(link)
            self._paused.discard(link)
            current = self._current.pop(link, None)
        with contextlib.suppress(OSError, ValueError):
            self._epoll.unregister(link.descriptor)
        how = "it has closed its channels" if link.is_closing else _reason(error)
        self.lose(link.peer, how)
        with self._lock:
            if not link.is_outgoing:
                self._fail_receives(link.peer)
            receive = current.receive if isinstance(current, Arrival) else current
            if receive is not None:
                self._fail(receive, link.peer)
        self._service.forget(link)
        link.stream.close()

    def incoming(self) -> list[Link]:
        """Return the links of ranks that send to this one."""
        with self._lock:
            return [link for link in self._by_descriptor.values() if not link.is_outgoing]

    def _living(self) -> list[Link]:
        return [link for rank, link in self._outgoing.items() if rank not in self.lost]

    # What arrives.

    def begin(self, link: Link, header: FrameHeader, description: bytes) -> Buffer | None:
        """Find memory for the body of a message; called by the reader of its link."""
        if header.kind > FrameKind.REMOTE:
            self._answer(link, header)
            return None
        if link.is_outgoing:
            raise FrameError("comes back on a link that only sends")
        key = (header.context, header.tag)
        remote = None
        if header.kind is FrameKind.REMOTE:
            if not link.pid:
                raise FrameError("has its body in the memory of another machine")
            remote = REMOTE_BODY.unpack_from(description)
            description = description[REMOTE_BODY.size :]
        with self._lock:
            receive = self._matching.arrived(key, link.peer)
            if receive is None:
                return self._keep(link, header, description, remote)
            receive.source, receive.description = link.peer, description
        arrival = Arrival(link.peer, description, header.body_bytes, remote=remote)
        if remote is not None:
            self._take_remote(receive, arrival)
            return None
        try:
            room = receive.room_for(header.body_bytes)
        except ValueError as error:
            receive.error, room = error, new_buffer(header.body_bytes)
        self._current[link] = receive
        return room

    def _keep(
        self, link: Link, header: FrameHeader, description: bytes, remote: tuple[int, int] | None
    ) -> Buffer | None:
        num_bytes = header.body_bytes
        if remote is None:
            is_full = self._matching.inbox_bytes + num_bytes > self.options.inbox_bytes
            if is_full and self._matching.inbox_bytes and not self._matching.awaits(link.peer):
                raise Pause
        arrival = Arrival(link.peer, description, num_bytes, remote=remote)
        if remote is None:
            arrival.data = new_buffer(num_bytes)
            self._current[link] = arrival
        self._matching.keep((header.context, header.tag), arrival)
        return arrival.data

    def end(self, link: Link) -> None:
        """Complete the current message of a link; called by its reader."""
        current = self._current.pop(link)
        with self._lock:
            if isinstance(current, Receive):
                self._complete(current)
                return
            assert current is not None
            current.is_complete = True
            receive = current.receive
        if receive is not None:
            self._take(receive, current)

    def _take(self, receive: Receive, arrival: Arrival) -> None:
        """Give the body of a message that was kept to its receive."""
        receive.source, receive.description = arrival.source, arrival.description
        assert arrival.data is not None
        try:
            if receive.into is None:
                receive.data = arrival.data
            elif len(room := receive.room_for(arrival.num_bytes)):
                room[:] = arrival.data
        except ValueError as error:
            receive.error = error
        with self._lock:
            self._complete(receive)

    def _take_remote(self, receive: Receive, arrival: Arrival) -> None:
        """Read a body from the memory of its sender, and tell the sender."""
        link = self._incoming[arrival.source]
        receive.source, receive.description = arrival.source, arrival.description
        assert arrival.remote is not None
        address, number = arrival.remote
        try:
            read_memory(link.pid, address, receive.room_for(arrival.num_bytes))
        except ValueError as error:
            receive.error = error
        except OSError as error:
            receive.error = LostWorkerError((arrival.source,), _reason(error))
        done = memoryview(packed_header(FrameKind.DONE, tag=number))
        with contextlib.suppress(OSError):  # the reader notices the end of the link
            if not link.writer.put([done], None, copy=True):
                self._service.flush_later(link)
        with self._lock:
            self._complete(receive)

    def _answer(self, link: Link, header: FrameHeader) -> None:
        if header.kind is FrameKind.BYE:
            link.is_closing = True
        elif header.kind is FrameKind.DONE:
            with self._lock:
                send = link.unread.pop(header.tag, None)
                if send is not None:
                    self._complete(send)

    # Progress.

    def _progress(self, is_enough: Callable[[], bool], timeout_s: float | None) -> None:
        """Read what arrives until something happened; one thread does, others wait for it."""
        with self._lock:
            self._check_open()
            if is_enough():
                return
            if self._is_driven:
                self._num_waiting += 1
                self._changed.wait(timeout_s)
                self._num_waiting -= 1
                return
            self._is_driven = True
            wait_s = self._wait_s(timeout_s)
        try:
            self._drive(wait_s)
        finally:
            with self._lock:
                self._is_driven = False
                if self._num_waiting:
                    self._changed.notify_all()

    def _wait_s(self, timeout_s: float | None) -> float:
        limits = [timeout_s, self.options.silence_s and self.options.silence_s / 4]
        limits += [link.stream.poll_s for link in self._polled]
        return min((limit for limit in limits if limit is not None), default=-1)

    def _drive(self, timeout_s: float) -> None:
        events = self._epoll.poll(timeout_s)
        links = [self._by_descriptor.get(descriptor) for descriptor, _ in events]
        if None in links:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_read, 4096)
        if self._polled or self._resumed:
            with self._lock:
                links += [*self._polled, *self._resumed]
                self._resumed.clear()
        for link in links:
            if link is not None and link.descriptor in self._by_descriptor:
                self._read(link)

    def _read(self, link: Link) -> None:
        try:
            link.last_read_s = time.monotonic()
            link.reader.read(link, self, self.options.max_message_bytes)
        except Pause:
            with self._lock:
                self._paused.add(link)
            self._epoll.modify(link.descriptor, 0)
        except (OSError, EOFError) as error:
            self.fail_link(link, error)
        except FrameError as error:
            self._service.refuse(error.problem)
            self.fail_link(link, error)

    def _resume(self) -> None:
        """Read paused links again, since there may be room now. The lock is held."""
        if self._paused:
            for link in self._paused:
                self._epoll.modify(link.descriptor, select.EPOLLIN | select.EPOLLRDHUP)
            self._resumed |= self._paused  # a message may be in the buffer of the reader already
            self._paused.clear()
            self._wake()

    def _check_silence(self, operation: Operation) -> None:
        limit_s, link = self.options.silence_s, self._outgoing.get(operation.peer or 0)
        if limit_s is None or operation.peer is None or link is None:
            return
        silent_s = time.monotonic() - max(link.last_read_s, self._last_from(operation.peer))
        if silent_s > limit_s:
            self.fail_link(link, TimeoutError(f"no sign of life for {silent_s:.1f} s"))
            self.lose(operation.peer, f"no sign of life for {silent_s:.1f} s")

    def _last_from(self, rank: int) -> float:
        incoming = self._incoming.get(rank)
        return 0.0 if incoming is None else incoming.last_read_s

    def complete_sends(self, sends: Sequence[Send]) -> None:
        """Mark messages as sent; the service calls this."""
        with self._lock:
            for send in sends:
                if send.body is None:  # otherwise it is done when it has been read
                    self._complete(send)
            if self._num_waiting:
                self._changed.notify_all()
            is_awaited = self._is_driven
        if is_awaited:
            self._wake()

    def _complete(self, operation: Operation) -> None:
        """Mark an operation as done. The lock is held."""
        if operation.is_done:
            return
        operation.is_done = True
        if isinstance(operation, Send) and operation.peer is not None:
            link = self._outgoing.get(operation.peer)
            if link is not None:
                link.pending_bytes -= operation.num_bytes
            operation.body = None

    def _fail(self, operation: Operation, rank: int) -> None:
        if not operation.is_done:
            operation.error = LostWorkerError((rank,), self.lost.get(rank, "it has ended"))
            self._complete(operation)

    def _fail_receives(self, rank: int) -> None:
        self._matching.discard_remote(rank)
        is_last = len(self.lost) >= self.size - 1
        for receive in self._matching.lost(rank, is_last=is_last):
            self._fail(receive, rank)

    def _fail_sends(self, link: Link) -> None:
        sends = link.writer.abandon()
        with self._lock:
            for send in (*sends, *link.unread.values()):
                self._fail(send, link.peer)
            link.unread.clear()
            if self._num_waiting:
                self._changed.notify_all()

    def _fail_if_hopeless(self, receive: Receive) -> None:
        """Fail a receive from a rank that has ended and whose messages are all read."""
        rank = receive.peer
        if rank is None or rank not in self.lost:
            return
        incoming = self._incoming.get(rank)
        if incoming is None or incoming.descriptor not in self._by_descriptor:
            self._matching.withdraw(receive)
            self._fail(receive, rank)

    def _send_to_self(self, send: Send, body: Buffer, context: int, description: bytes) -> None:
        copy = new_buffer(len(body))
        copy[:] = body
        arrival = Arrival(self.rank, description, len(body), data=copy, is_complete=True)
        with self._lock:
            receive = self._matching.arrived((context, send.tag), self.rank)
            if receive is None:
                self._matching.keep((context, send.tag), arrival)
        if receive is not None:
            self._take(receive, arrival)
            self._wake()
        send.is_done = True

    def _check_open(self) -> None:
        if self.is_closed:
            raise ChannelClosedError

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError, OSError):
            os.write(self._wake_write, b"w")


def new_secret() -> bytes:
    """Return a random secret for a job."""
    return secrets.token_bytes(32)


def _deadline(timeout_s: float | None) -> float | None:
    return None if timeout_s is None else time.monotonic() + timeout_s


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else deadline - time.monotonic()


def _reason(error: Exception) -> str:
    if isinstance(error, EOFError):
        return "its connection was closed"
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or repr(error)
