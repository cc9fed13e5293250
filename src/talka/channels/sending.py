"""Sending: whole messages through the stream, long ones on one machine through memory."""

import itertools
import threading
import time
from collections.abc import Callable, Iterable
from typing import ClassVar, Final, Protocol

from talka.channels.buffers import PartBuffers, part_bytes
from talka.channels.limits import deadline_of, left_of
from talka.channels.operations import Buffer, Operation, SendOperation, Waiter
from talka.channels.wire.frames import MAX_DESCRIPTION_BYTES, REMOTE_PART, FrameKind, packed_header
from talka.channels.wire.link import WireLink
from talka.channels.wire.memory import address_of
from talka.errors import ChannelTimeoutError, InvalidValueError

_REMOTE_BYTES: Final = 1 << 20
"""Bytes from which a body is read from the sender's memory: below, the stream is faster, as one end
writes while the other reads."""
_REMOTE_COPY_BYTES: Final = 1 << 23
"""The same for a body that is copied first, so that it is copied twice in any case."""

_COLLECT_BYTES: Final = 1 << 22
"""Bytes on their way from which on acknowledgements are looked for between two parts."""


class Sender(Waiter, Protocol):
    """The mailbox, as sending uses it."""

    lost: dict[int, str]

    def check_silence(self, rank: int, since_s: float) -> None: ...
    def progress(self, is_enough: Callable[[], bool], timeout_s: float | None) -> None: ...
    def break_off(self, link: WireLink, error: OSError) -> None: ...
    def flush_later(self, link: WireLink) -> None: ...
    def complete(self, operation: Operation) -> None: ...
    def fail(self, operation: Operation, rank: int) -> None: ...


class Envelope:
    """Where a message goes and what it is."""

    __slots__ = ("context", "description", "tag")

    def __init__(self, tag: int, context: int, description: bytes) -> None:
        longest = MAX_DESCRIPTION_BYTES - REMOTE_PART.size
        if len(description) > longest:
            allowed = f"at most {longest} bytes"
            raise InvalidValueError("description of a message", len(description), allowed)
        self.tag, self.context, self.description = tag, context, description

    def frame(self, kind: FrameKind, num_bytes: int, *, before: bytes = b"") -> Buffer:
        """Return the header and the description of a message."""
        description = before + self.description
        header = packed_header(
            kind,
            description_bytes=len(description),
            context=self.context,
            tag=self.tag,
            body_bytes=num_bytes,
        )
        return memoryview(header + description)


class Sending:
    """Starts messages; the lock of the mailbox guards what is pending."""

    near_bytes: ClassVar[int] = 0
    """Bytes that this process sent to ranks of its machine."""

    def __init__(
        self, sender: Sender, lock: threading.Lock, buffers: PartBuffers, buffer_bytes: int
    ) -> None:
        self._sender, self._lock, self._buffers = sender, lock, buffers
        self._buffer_bytes = buffer_bytes
        self._numbers = itertools.count(1)
        self.sent_bytes = 0

    def post(
        self, link: WireLink, body: Buffer, envelope: Envelope, needs: frozenset[int]
    ) -> SendOperation:
        """Start to send bytes, which must not change before the send is done."""
        send = SendOperation(self._sender, link.peer, envelope.tag, len(body))
        send.needs = needs
        if _is_read_from_memory(link, body, is_copy=False):
            send.body = body
            _, head = self._remote_part(link, send, len(body))
            frame = envelope.frame(FrameKind.REMOTE, len(body), before=head)
            self._put(link, send, [frame])
        else:
            frame = envelope.frame(FrameKind.DATA, len(body))
            self._put(link, send, [frame, body] if len(body) else [frame])
        return send

    def send(
        self, link: WireLink, body: Buffer, envelope: Envelope, timeout_s: float | None
    ) -> None:
        """Send bytes that may change afterwards; wait only if too much is on its way."""
        deadline = deadline_of(timeout_s)
        if not _is_read_from_memory(link, body, is_copy=True):
            self._wait_for_room(link, len(body), deadline, timeout_s)
            send = SendOperation(self._sender, link.peer, envelope.tag, len(body))
            frame = envelope.frame(FrameKind.DATA, len(body))
            self._put(link, send, [frame, body] if len(body) else [frame], copy=True)
            return
        message, length = 0, part_bytes(len(body))
        for start in range(0, len(body), length):
            part = body[start : start + length]
            try:
                self._wait_for_room(link, len(part), deadline, timeout_s)
            except ChannelTimeoutError:
                if message:
                    self._cancel(link, message, envelope.tag)
                raise
            if link.pending_bytes > _COLLECT_BYTES:  # use buffers again that the receiver has read
                self._sender.progress(lambda: False, 0)
            send = SendOperation(self._sender, link.peer, envelope.tag, len(part))
            send.body, send.give_back = self._buffers.copy(part), self._buffers.give_back
            number, head = self._remote_part(link, send, len(part))
            if message:
                header = packed_header(FrameKind.PART, description_bytes=len(head), tag=message)
                frame = memoryview(header + head)
            else:
                message, frame = number, envelope.frame(FrameKind.REMOTE, len(body), before=head)
            self._put(link, send, [frame])

    def give_up(self, rank: int, links: Iterable[WireLink]) -> None:
        """Fail what a collective with a lost rank has sent, and others do not read. With the lock."""
        for link in links:
            for send in link.unread.values():
                if rank in send.needs:
                    self._sender.fail(send, rank)

    def _cancel(self, link: WireLink, message: int, tag: int) -> None:
        """Let the receiver drop a message of which parts are missing."""
        frame = memoryview(packed_header(FrameKind.CANCEL, tag=message))
        self._put(link, SendOperation(self._sender, link.peer, tag, 0), [frame], copy=True)

    def _put(
        self, link: WireLink, send: SendOperation, views: list[memoryview], *, copy: bool = False
    ) -> None:
        sender = self._sender
        with self._lock:
            link.pending_bytes += send.num_bytes
            num_bytes = send.num_bytes + len(views[0])
            self.sent_bytes += num_bytes
            Sending.near_bytes += num_bytes if link.is_near else 0
        try:
            is_written = link.writer.put(views, send, copy=copy)
        except OSError as error:
            sender.break_off(link, error)
            is_written = True
        if not is_written:
            sender.flush_later(link)
        elif send.body is None:
            with self._lock:
                sender.complete(send)
        if link.peer in sender.lost:
            with self._lock:
                sender.fail(send, link.peer)

    def _remote_part(
        self, link: WireLink, send: SendOperation, num_bytes: int
    ) -> tuple[int, bytes]:
        """Return the number of a part, and where the receiver finds it in this process's memory."""
        number = next(self._numbers)
        assert send.body is not None
        with self._lock:
            link.unread[number] = send
        return number, REMOTE_PART.pack(address_of(send.body), number, num_bytes)

    def _wait_for_room(
        self, link: WireLink, num_bytes: int, deadline: float | None, timeout_s: float | None
    ) -> None:
        """Wait until less than the limit is on its way; a message beyond it goes alone."""
        limit = max(0, self._buffer_bytes - num_bytes)

        def has_room() -> bool:
            return link.pending_bytes <= limit or link.peer in self._sender.lost

        start_s = time.monotonic()
        while not has_room():
            left_s = left_of(deadline)
            if left_s is not None and left_s <= 0:
                assert timeout_s is not None
                what = f"send to rank {link.peer}, which does not receive"
                raise ChannelTimeoutError(what, timeout_s)
            self._sender.check_silence(link.peer, start_s)
            self._sender.progress(has_room, left_s)


def _is_read_from_memory(link: WireLink, body: Buffer, *, is_copy: bool) -> bool:
    return link.pid > 0 and len(body) >= (_REMOTE_COPY_BYTES if is_copy else _REMOTE_BYTES)


def near_bytes() -> int:
    """Return the bytes of messages of this process to other ranks of its machine so far."""
    return Sending.near_bytes
