"""All messages of one process: sends to other ranks, and receives from them.

    send     the calling thread writes to the socket; the service thread sends what it did not take
    receive  a thread that waits reads all sockets, for itself and for other threads that wait

So a short message needs no thread but those of its sender and its receiver. Nothing is read
while no thread waits: the buffers of sockets fill up, then those of senders, then sends block.
"""

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from talka.channels.buffers import PartBuffers
from talka.channels.delivery import Delivery
from talka.channels.limits import comes_true, deadline_of, left_of, reason_of
from talka.channels.operations import Buffer, Operation, ReceiveOperation, SendOperation
from talka.channels.options import MailboxOptions
from talka.channels.reading import Reading
from talka.channels.rendezvous import Rendezvous
from talka.channels.sending import Envelope, Sending
from talka.channels.wire.connecting import Connector
from talka.channels.wire.frames import FrameKind, packed_header
from talka.channels.wire.link import WireLink
from talka.channels.wire.service import Service
from talka.errors import (
    ChannelClosedError,
    ChannelTimeoutError,
    ConnectionFailedError,
    InvalidValueError,
    LostWorkerError,
)

_CLOSE_S: Final = 5.0


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
        """Lost ranks and how they ended; `_dead` are those that had not finished before."""
        self._dead: set[int] = set()
        self.is_closed = self.has_finished = False
        self._lock = threading.Lock()
        self._outgoing: dict[int, WireLink] = {}
        self._num_groups: dict[tuple[tuple[int, ...], str], itertools.count[int]] = {}
        self.buffers = PartBuffers()
        self._connecting = threading.Lock()
        self._connector = Connector(rank, size, rendezvous, secret, address, self.options)
        self._service = Service(self, self._connector)
        self._delivery = Delivery(
            self._lock,
            inbox_bytes=self.options.inbox_bytes,
            complete=self.complete,
            flush_later=self._service.flush_later,
        )
        self._sending = Sending(self, self._lock, self.buffers, self.options.buffer_bytes)
        self._reading = Reading(self, self._lock, self._delivery, self._service.refuse)
        self._service.start()

    # What callers use.

    def post_send(
        self,
        to: int,
        body: Buffer,
        *,
        tag: int,
        context: int = 0,
        description: bytes = b"",
        needs: frozenset[int] = frozenset(),
    ) -> SendOperation:
        """Start to send bytes, which must not change before the send is done."""
        envelope = self._checked(body, tag, context, description)
        if to != self.rank:
            return self._sending.post(self.link_to(to), body, envelope, needs)
        self._delivery.to_self(to, (context, tag), description, body)
        self._reading.wake()
        send = SendOperation(self, to, tag, len(body))
        send.is_done = True
        return send

    def send(
        self,
        to: int,
        body: Buffer,
        *,
        tag: int,
        context: int = 0,
        description: bytes = b"",
        timeout_s: float | None = None,
    ) -> None:
        """Send bytes, which may change afterwards, without waiting for the receiver.

        Waits only if more than `buffer_bytes` are on their way to that rank: then until it has
        received some. Raises LostWorkerError and ChannelTimeoutError.
        """
        if to == self.rank:
            self.post_send(to, body, tag=tag, context=context, description=description)
            return
        envelope = self._checked(body, tag, context, description)
        self._sending.send(self.link_to(to), body, envelope, timeout_s)
        if to in self.lost:
            raise LostWorkerError((to,), self.lost[to])

    def post_receive(
        self,
        source: int | None,
        *,
        tag: int,
        context: int = 0,
        into: Buffer | None = None,
        is_exact: bool = False,
        needs: frozenset[int] = frozenset(),
    ) -> ReceiveOperation:
        """Start to receive a message from a rank, or from any; `into` is memory for its body.

        A body that is longer is an error; with `is_exact`, one that is shorter, too. If one of the
        ranks in `needs` is lost, the receive fails.
        """
        self._check_open()
        receive = ReceiveOperation(self, source, context, tag, into)
        receive.is_exact, receive.needs = is_exact, needs
        if source is not None and source != self.rank and source not in self._outgoing:
            self._watch(source)
        if not self._delivery.post(receive):
            self._reading.resume()
            if source in self.lost or (source is None and self.lost) or needs & self._dead:
                with self._lock:
                    self._fail_if_hopeless(receive)
        return receive

    def wait(self, operation: Operation, timeout_s: float | None = None) -> None:
        """Wait until an operation is done; it keeps its error."""
        deadline, start_s = deadline_of(timeout_s), time.monotonic()
        while not operation.is_done:
            left_s = left_of(deadline)
            if left_s is not None and left_s <= 0:
                if isinstance(operation, ReceiveOperation):
                    with self._lock:
                        self._delivery.matching.withdraw(operation)
                assert timeout_s is not None
                raise ChannelTimeoutError(str(operation), timeout_s)
            if operation.peer is not None:
                self.check_silence(operation.peer, start_s)
            self._reading.progress(lambda: operation.is_done, left_s, operation.copied_bytes)

    @property
    def refused(self) -> dict[str, int]:
        """Number of connections and messages that were dropped, by reason."""
        return dict(self._service.refused)

    @property
    def sent_bytes(self) -> int:
        """Bytes of all messages to other ranks so far, with their headers and descriptions."""
        return self._sending.sent_bytes

    def next_of(self, ranks: tuple[int, ...], name: str) -> int:
        """Return how many groups of these ranks and this name were opened before."""
        with self._lock:
            return next(self._num_groups.setdefault((ranks, name), itertools.count()))

    def forget(self, context: int) -> None:
        """Drop receives and messages of a group that is closed."""
        receives = self._delivery.forget(context)
        with self._lock:
            for receive in receives:
                receive.error = ChannelClosedError()
                self.complete(receive)
        self._reading.wake()

    def machines(self, ranks: Sequence[int]) -> list[str]:
        """Return an identifier of the machine of each rank."""
        return [self._connector.location_of(rank).machine for rank in ranks]

    def finish(self) -> None:
        """Announce that nothing more will be sent; others can still receive what was sent.

        A rank that waits for more from this one gets an error instead of waiting forever.
        """
        if self.has_finished or self.is_closed:
            return
        self.has_finished = True
        self._service.announce(packed_header(FrameKind.BYE), self._living())

    def close(self) -> None:
        """Wait until messages are sent, then close all connections. May be called twice."""
        if self.is_closed:
            return
        self.finish()
        deadline = time.monotonic() + _CLOSE_S
        while any(link.pending_bytes for link in self._living()) and time.monotonic() < deadline:
            self._reading.progress(lambda: False, 0.02)
        self.is_closed = True
        self._service.close()
        self._reading.close()
        self._connector.close()

    def link_to(self, rank: int) -> WireLink:
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
                self._reading.add(link)
            return link

    def _watch(self, rank: int) -> None:
        """Make sure that there is a link, whose end means that a rank has ended."""
        if self.options.silence_s is None and self._is_read_or_lost(rank):
            return  # signs of life come on outgoing links
        try:
            self.link_to(rank)
        except (LostWorkerError, ConnectionFailedError):
            # It may have sent its last message and ended: its own link is then about to be read.
            if not comes_true(lambda: self._is_read_or_lost(rank), within_s=0.2):
                raise

    def _is_read_or_lost(self, rank: int) -> bool:
        with self._lock:
            return rank in self.lost or self._reading.is_read(rank)

    def accept(self, link: WireLink) -> None:
        """Read messages from a new link; the service calls this after the handshake."""
        self._delivery.add(link)
        self._reading.add(link)

    def incoming(self) -> list[WireLink]:
        """Return the links of ranks that send to this one."""
        return [link for link in self._reading.links() if not link.is_outgoing]

    def lose(self, rank: int, how: str) -> None:
        """Record that a rank has ended: what needs it fails, at once or after its last message."""
        with self._lock:
            is_other = 0 <= rank < self.size and rank != self.rank
            if rank in self.lost or not is_other or self.is_closed:
                return
            self.lost[rank] = how
            self._dead.add(rank)
            for receive in self._delivery.matching.needing(rank):
                self.fail(receive, rank)
            self._sending.give_up(rank, self._outgoing.values())
            if not self._reading.is_read(rank):
                self._fail_receives(rank)
        self._service.announce(packed_header(FrameKind.LOST, tag=rank), self._living())
        outgoing = self._outgoing.get(rank)
        if outgoing is not None:
            self._fail_sends(outgoing)
        self._reading.wake()

    def fail_link(self, link: WireLink, error: Exception) -> None:
        """Close a link that ended or broke, and lose its rank."""
        if not self._reading.remove(link):
            return
        receives = self._delivery.remove(link)
        self.lose(link.peer, "it has closed its channels" if link.is_closing else reason_of(error))
        with self._lock:
            if not link.is_outgoing:
                self._fail_receives(link.peer)
            for receive in receives:
                self.fail(receive, link.peer)
        self._service.forget(link)
        link.stream.close()
        self._reading.wake()

    def done(self, link: WireLink, number: int) -> None:
        """Note that the receiver has read a part of a message."""
        with self._lock:
            send = link.unread.pop(number, None)
            if send is not None:
                self.complete(send)

    def finished(self, rank: int) -> None:
        """Fail what waits for a rank that sends nothing more."""
        with self._lock:
            if rank in self.lost:
                return
            self.lost[rank] = "it has finished"
            self._fail_awaiting(rank)

    def complete_sends(self, sends: Sequence[SendOperation]) -> None:
        """Mark messages as sent; the service calls this."""
        with self._lock:
            for send in sends:
                if send.body is None:  # otherwise it is done when it has been read
                    self.complete(send)
        self._reading.wake()

    def progress(self, is_enough: Callable[[], bool], timeout_s: float | None) -> None:
        """Read what arrives until something happened."""
        self._reading.progress(is_enough, timeout_s)

    def break_off(self, link: WireLink, error: OSError) -> None:
        """Note that nothing more can be sent to the rank of a link."""
        self.lose(link.peer, reason_of(error))

    def flush_later(self, link: WireLink) -> None:
        """Send what waits in a link when its stream has room."""
        self._service.flush_later(link)

    def _checked(self, body: Buffer, tag: int, context: int, description: bytes) -> Envelope:
        self._check_open()
        if len(body) > self.options.max_message_bytes:
            allowed = f"at most {self.options.max_message_bytes} bytes (max_message_bytes)"
            raise InvalidValueError("length of a message", len(body), allowed)
        return Envelope(tag, context, description)

    # Ends of operations; the lock is held.

    def complete(self, operation: Operation) -> None:
        """Mark an operation as done."""
        if operation.is_done:
            return
        operation.is_done = True
        if isinstance(operation, SendOperation) and operation.peer is not None:
            link = self._outgoing.get(operation.peer)
            if link is not None:
                link.pending_bytes -= operation.num_bytes
            if operation.give_back is not None and operation.body is not None:
                operation.give_back(operation.body)
            operation.body = None

    def fail(self, operation: Operation, rank: int) -> None:
        """End an operation with an error that names a lost rank."""
        if not operation.is_done:
            operation.error = LostWorkerError((rank,), self.lost.get(rank, "it has ended"))
            self.complete(operation)

    def _fail_receives(self, rank: int) -> None:
        self._delivery.matching.discard_incomplete(rank)
        self._fail_awaiting(rank)

    def _fail_awaiting(self, rank: int) -> None:
        for receive in self._delivery.matching.lost(rank, is_last=self._is_alone()):
            self.fail(receive, rank)

    def _fail_sends(self, link: WireLink) -> None:
        sends = link.writer.abandon()
        with self._lock:
            for send in (*sends, *link.unread.values()):
                self.fail(send, link.peer)
            link.unread.clear()

    def _fail_if_hopeless(self, receive: ReceiveOperation) -> None:
        """Fail a receive from a rank that has ended, or from any if all have; with the lock."""
        rank, dead = receive.peer, receive.needs & self._dead
        if dead or (self._is_alone() if rank is None else not self._reading.is_read(rank)):
            self._delivery.matching.withdraw(receive)
            self.fail(receive, min(dead) if dead else max(self.lost) if rank is None else rank)

    def _is_alone(self) -> bool:
        """Return whether all other ranks have ended and their messages are read. With the lock."""
        return len(self.lost) >= self.size - 1 and not self._reading.reads_any()

    def check_silence(self, rank: int, since_s: float) -> None:
        """Lose a rank that has been silent for too long since this process began to wait for it.

        While this process did not wait it did not read, so signs of life may still be unread. A rank
        that others have given up already may have open links: what waits for it ends here, too.
        """
        limit_s = self.options.silence_s
        if limit_s is None:
            return
        silent_s = time.monotonic() - max(since_s, self._reading.last_read_s(rank))
        if silent_s > limit_s:
            error = TimeoutError(f"no sign of life for {silent_s:.1f} s")
            for link in self._reading.links():
                if link.peer == rank:
                    self.fail_link(link, error)

    def _living(self) -> list[WireLink]:
        return [link for rank, link in self._outgoing.items() if rank not in self.lost]

    def _check_open(self) -> None:
        if self.is_closed:
            raise ChannelClosedError
