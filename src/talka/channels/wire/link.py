"""One direction between two ranks: a stream, the bytes that wait to be sent, and its reader.

The rank that opened a link sends messages; the other one answers only `done` and `alive`. Two ranks
that send to each other have two links, so neither has to ask who opens one first.
"""

import threading
import time
from collections import deque
from typing import Protocol

from talka.channels.operations import Buffer, SendOperation
from talka.channels.wire.frames import HEADER, MAX_DESCRIPTION_BYTES, FrameHeader, parse_header
from talka.channels.wire.streams import ByteStream

_READ_BYTES = 1 << 17
_BUDGET_BYTES = 1 << 22
"""Bytes that one link may read before the others have their turn."""
assert HEADER.size + MAX_DESCRIPTION_BYTES <= _READ_BYTES


class InboxFull(Exception):  # not an error
    """The receiver has no room for this message yet."""


class MessageSink(Protocol):
    """Receives the messages of a link."""

    def begin(self, link: "WireLink", header: FrameHeader, description: bytes) -> Buffer | None:
        """Return the memory for the body, or None if no body follows; raise `InboxFull`."""
        ...

    def end(self, link: "WireLink") -> None:
        """The body is complete."""
        ...


class WireLink:
    """A connection to one rank."""

    def __init__(
        self,
        stream: ByteStream,
        peer: int,
        *,
        is_outgoing: bool,
        pid: int = 0,
        is_near: bool = False,
    ) -> None:
        self.stream, self.peer, self.is_outgoing = stream, peer, is_outgoing
        self.descriptor = stream.fileno()
        self.is_near = is_near
        """True if both ends are on one machine."""
        self.pid = pid
        """Process at the other end, if the receiver reads bodies from the sender's memory."""
        self.writer = Writer(stream)
        self.reader = Reader(stream)
        self.unread: dict[int, SendOperation] = {}
        """Messages whose body the other end has not read yet, by number."""
        self.pending_bytes = 0
        """Bytes of messages that are not sent, or not read, yet."""
        self.last_read_s = time.monotonic()
        self.is_closing = False
        """True if the other end sends nothing more."""


class Writer:
    """Bytes that wait until the stream has room. Messages are written whole, one after another."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._queue: deque[tuple[list[memoryview], SendOperation | None]] = deque()
        self._lock = threading.Lock()

    def put(self, views: list[memoryview], send: SendOperation | None, *, copy: bool) -> bool:
        """Write as much as the stream takes now; return whether that was all.

        With `copy`, the rest is copied, as the caller may change its memory. OSError if the
        connection is gone.
        """
        with self._lock:
            if not self._queue:
                views = _after(views, self._stream.send(views))
                if not views:
                    return True
            if copy:
                views = [memoryview(b"".join(views))]
            self._queue.append((views, send))
            return False

    def flush(self) -> list[SendOperation]:
        """Write what waits; return sends that are complete by now. OSError as `put`."""
        complete: list[SendOperation] = []
        with self._lock:
            while self._queue:
                views, send = self._queue[0]
                views = _after(views, self._stream.send(views))
                if views:
                    self._queue[0] = (views, send)
                    break
                self._queue.popleft()
                if send is not None:
                    complete.append(send)
        return complete

    def abandon(self) -> list[SendOperation]:
        """Drop what waits, and return its sends."""
        with self._lock:
            sends = [send for _, send in self._queue if send is not None]
            self._queue.clear()
        return sends

    @property
    def is_empty(self) -> bool:
        """True if nothing waits."""
        return not self._queue


def _after(views: list[memoryview], num_sent: int) -> list[memoryview]:
    """Return what is left after the first `num_sent` bytes."""
    index = 0
    while index < len(views) and num_sent >= len(views[index]):
        num_sent -= len(views[index])
        index += 1
    rest = views[index:]
    if num_sent:
        rest[0] = rest[0][num_sent:]
    return rest


class Reader:
    """Cuts a stream into messages. Bodies are received into their final memory if they are long.

    A buffer collects short messages: one system call receives several of them.
    """

    def __init__(self, stream: ByteStream) -> None:
        self._receive_into = stream.recv_into
        self._view = memoryview(bytearray(_READ_BYTES))
        self._start = self._stop = 0
        self._rest: memoryview | None = None
        """Part of the current body that has not arrived yet."""

    def read(self, link: WireLink, sink: MessageSink, max_message_bytes: int) -> None:
        """Receive what there is, up to a budget, and pass messages to the sink.

        Raises EOFError at the end of the stream, OSError, FrameError, or `InboxFull`; after a pause, the
        message is offered again.
        """
        budget = _BUDGET_BYTES
        self._parse(link, sink, max_message_bytes)  # a message may have been offered before
        while budget > 0:
            is_body = self._rest is not None and self._start == self._stop
            if not is_body and self._start:
                self._compact()
            target = self._rest if is_body else self._view[self._stop :]
            assert target is not None
            try:
                count = self._receive_into(target)
            except BlockingIOError:
                return
            if not count:
                raise EOFError
            budget -= count
            if is_body:
                self._advance(link, sink, target, count)
            else:
                self._stop += count
                self._parse(link, sink, max_message_bytes)
            if count < len(target):
                return

    def _compact(self) -> None:
        left = self._stop - self._start
        self._view[:left] = self._view[self._start : self._stop]
        self._start, self._stop = 0, left

    def _advance(self, link: WireLink, sink: MessageSink, rest: memoryview, count: int) -> None:
        if count == len(rest):
            self._rest = None
            sink.end(link)
        else:
            self._rest = rest[count:]

    def _parse(self, link: WireLink, sink: MessageSink, max_message_bytes: int) -> None:
        """Pass on all that is in the buffer."""
        while self._start < self._stop:
            available = self._stop - self._start
            if self._rest is not None:
                count = min(available, len(self._rest))
                self._rest[:count] = self._view[self._start : self._start + count]
                self._start += count
                self._advance(link, sink, self._rest, count)
                continue
            if available < HEADER.size:
                return
            header = parse_header(self._view[self._start : self._stop], max_message_bytes)
            head_bytes = HEADER.size + header.description_bytes
            if available < head_bytes:
                return
            description = bytes(self._view[self._start + HEADER.size : self._start + head_bytes])
            body = sink.begin(link, header, description)
            self._start += head_bytes
            if body is not None:
                self._rest = body
                if not len(body):
                    self._rest = None
                    sink.end(link)
