"""Delivery of messages that arrive on links into the memory of receives."""

import contextlib
import threading
from collections.abc import Callable

from talka.channels.matching import Arrival, Matching, RemotePart
from talka.channels.operations import Buffer, Operation, ReceiveOperation, new_buffer
from talka.channels.wire.frames import REMOTE_PART, FrameHeader, FrameKind, packed_header
from talka.channels.wire.link import InboxFull, WireLink
from talka.channels.wire.memory import read_memory
from talka.errors import ChannelTimeoutError, FrameError, LostWorkerError


class Delivery:
    """Brings messages into the memory of their receives; a `MessageSink` for the readers of links.

    Parameters
    ----------
    lock
        Guards the matching; the caller of the methods that say so holds it.
    complete
        Marks an operation as done; called with the lock.
    flush_later
        Called with a link whose stream has no room for an answer.
    """

    def __init__(
        self,
        lock: threading.Lock,
        *,
        inbox_bytes: int,
        complete: Callable[[Operation], None],
        flush_later: Callable[[WireLink], None],
    ) -> None:
        self.matching = Matching()
        self._lock, self._inbox_bytes = lock, inbox_bytes
        self._complete, self._flush_later = complete, flush_later
        self._current: dict[WireLink, Arrival] = {}
        """Message whose body comes through the stream of a link."""
        self._partial: dict[tuple[WireLink, int], Arrival] = {}
        """Remote messages of which parts are missing, by the number of their first part."""
        self._links: dict[int, WireLink] = {}

    def add(self, link: WireLink) -> None:
        """Note the link on which a rank sends its messages."""
        self._links[link.peer] = link

    def remove(self, link: WireLink) -> list[ReceiveOperation]:
        """Forget a link that has ended; return the receives whose bodies were arriving on it."""
        keys = [key for key in list(self._partial) if key[0] is link]
        arrivals = [self._partial.pop(key, None) for key in keys]
        arrivals.append(self._current.pop(link, None))
        receives = [None if arrival is None else arrival.receive for arrival in arrivals]
        return [receive for receive in receives if receive is not None]

    def forget(self, context: int) -> list[ReceiveOperation]:
        """Drop the messages of a context, and let their senders continue; return its receives."""
        with self._lock:
            receives, arrivals = self.matching.forget(context)
            parts = [(arrival, part) for arrival in arrivals for part in _dropped(arrival)]
        for arrival, part in parts:
            self._answer(self._links[arrival.source], part)
        return receives

    def post(self, receive: ReceiveOperation, *, is_first: bool = False) -> bool:
        """Take the message for a receive if it has begun to arrive; otherwise return False."""
        with self._lock:
            arrival = self.matching.post(receive, is_first=is_first)
            if arrival is None:
                return False
            self._assign(arrival, receive)
            parts, arrival.parts = arrival.parts, []
            is_complete = arrival.is_complete  # later, `end` hands it over
        if arrival.is_remote:
            for part in parts:
                self._read_part(arrival, part)
        elif is_complete:
            self._hand_over(arrival)
        return True

    def to_self(self, rank: int, key: tuple[int, int], description: bytes, body: Buffer) -> None:
        """Deliver a message of this process to itself."""
        copy = new_buffer(len(body))
        copy[:] = body
        arrival = Arrival(rank, description, len(body), data=copy, num_read=len(body))
        with self._lock:
            receive = self.matching.arrived(key, rank)
            if receive is None:
                self.matching.keep(key, arrival)
            else:
                self._assign(arrival, receive)
        if receive is not None:
            self._hand_over(arrival)

    # The sink of readers.

    def begin(self, link: WireLink, header: FrameHeader, description: bytes) -> Buffer | None:
        """Find memory for the body of a message."""
        if link.is_outgoing:
            raise FrameError("comes back on a link that only sends")
        if header.kind in (FrameKind.PART, FrameKind.CANCEL):
            partial = self._partial.pop((link, header.tag), None)
            if partial is None:
                raise FrameError("continues a message that has not begun")
            if header.kind is FrameKind.PART:
                self._announce(partial, link, description, header.tag)
            else:
                self._cancel(partial, link)
            return None
        key = (header.context, header.tag)
        is_remote = header.kind is FrameKind.REMOTE
        arrival = Arrival(link.peer, description, header.body_bytes, is_remote=is_remote)
        if is_remote:
            arrival.description = description[REMOTE_PART.size :]
        with self._lock:
            receive = self.matching.arrived(key, link.peer)
            if receive is not None:
                self._assign(arrival, receive)
            else:
                self._keep(link, key, arrival)
        if is_remote:
            self._announce(arrival, link, description, REMOTE_PART.unpack_from(description)[1])
            return None
        self._current[link] = arrival
        if receive is None or receive.error is not None:
            arrival.data = arrival.data or new_buffer(header.body_bytes)
            return arrival.data
        return receive.data

    def end(self, link: WireLink) -> None:
        """Complete the message whose body came through the stream of a link."""
        arrival = self._current.pop(link)
        with self._lock:
            arrival.num_read = arrival.num_bytes
            receive = arrival.receive
            if receive is not None and arrival.data is None:
                self._complete(receive)
                return
        if receive is not None:
            self._hand_over(arrival)

    def _keep(self, link: WireLink, key: tuple[int, int], arrival: Arrival) -> None:
        """Keep a message without a receive; raise `InboxFull` if there are too many. With the lock."""
        if not arrival.is_remote:
            total = self.matching.inbox_bytes
            is_full = total > 0 and total + arrival.num_bytes > self._inbox_bytes
            if is_full and not self.matching.awaits(link.peer):
                raise InboxFull
            arrival.data = new_buffer(arrival.num_bytes)
        self.matching.keep(key, arrival)

    def _assign(self, arrival: Arrival, receive: ReceiveOperation) -> None:
        """Connect a message with its receive. With the lock."""
        arrival.receive = receive
        receive.source, receive.description = arrival.source, arrival.description
        if receive.into is None and arrival.data is not None:
            receive.data = arrival.data
            return
        try:
            receive.room_for(arrival.num_bytes)
        except ValueError as error:
            receive.error = error

    def _hand_over(self, arrival: Arrival) -> None:
        """Copy a body that was kept into the memory of its receive, if that has its own."""
        receive = arrival.receive
        assert receive is not None
        assert arrival.data is not None
        if receive.error is None and receive.data is not arrival.data and arrival.num_bytes:
            receive.data[:] = arrival.data
        with self._lock:
            self._complete(receive)

    # Bodies in the memory of their sender.

    def _cancel(self, arrival: Arrival, link: WireLink) -> None:
        """Drop a message that its sender gave up; its receive waits for the next one."""
        with self._lock:
            receive, parts = arrival.receive, _dropped(arrival)
            if receive is None:
                self.matching.discard(arrival)
            elif arrival.num_read < arrival.num_announced:  # another thread writes to its memory
                receive.error = ChannelTimeoutError(f"send of rank {link.peer}, which gave up", 0.0)
                self._complete(receive)
        for part in parts:
            self._answer(link, part)
        if receive is not None and not receive.is_done:
            receive.reset()
            self.post(receive, is_first=True)

    def _announce(self, arrival: Arrival, link: WireLink, description: bytes, message: int) -> None:
        """Note a part of a remote body; read it if the message is awaited."""
        address, number, num_bytes = REMOTE_PART.unpack_from(description)
        if not link.pid:
            raise FrameError("has its body in the memory of another machine")
        if num_bytes > arrival.num_bytes - arrival.num_announced:
            raise FrameError("has parts that are longer than itself")
        part = RemotePart(address, number, arrival.num_announced, num_bytes)
        arrival.num_announced += num_bytes
        if arrival.num_announced < arrival.num_bytes:
            self._partial[link, message] = arrival
        with self._lock:
            is_dropped = arrival.is_dropped
            if arrival.receive is None and not is_dropped:
                arrival.parts.append(part)
                return
        if is_dropped:
            self._answer(link, part)
        else:
            self._read_part(arrival, part)

    def _read_part(self, arrival: Arrival, part: RemotePart) -> None:
        """Copy a part from the memory of its sender, and acknowledge it."""
        receive, link = arrival.receive, self._links[arrival.source]
        assert receive is not None
        try:
            if receive.error is None and part.num_bytes:
                into = receive.data[part.offset : part.offset + part.num_bytes]
                read_memory(link.pid, part.address, into)
        except OSError as error:
            receive.error = LostWorkerError((arrival.source,), error.strerror or str(error))
        self._answer(link, part)
        with self._lock:
            arrival.num_read += part.num_bytes
            if arrival.is_complete:
                self._complete(receive)

    def _answer(self, link: WireLink, part: RemotePart) -> None:
        """Tell the sender that it may use the memory of a part again."""
        done = memoryview(packed_header(FrameKind.DONE, tag=part.number))
        with contextlib.suppress(OSError):  # the reader notices the end of the link
            if not link.writer.put([done], None, copy=True):
                self._flush_later(link)


def _dropped(arrival: Arrival) -> list[RemotePart]:
    """Return the parts that are not going to be read. With the lock."""
    arrival.is_dropped = True
    parts, arrival.parts = arrival.parts, []
    return parts
