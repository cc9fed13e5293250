"""Reading all links of a process: one thread of those that wait does it for all of them."""

import contextlib
import os
import select
import threading
import time
from collections.abc import Callable
from typing import Protocol

from talka.channels.delivery import Delivery
from talka.channels.operations import Buffer
from talka.channels.wire.frames import FrameHeader, FrameKind
from talka.channels.wire.link import InboxFull, WireLink
from talka.errors import ChannelClosedError, FrameError
from talka.machine import num_cores

_CLOSE_S = 5.0
_POLL_S = 1e-4
"""Seconds of polling, about as long as the kernel takes to wake a thread up."""
_COPY_BYTES_PER_S = 5e9
_READABLE = select.EPOLLIN | select.EPOLLRDHUP


class Limits(Protocol):
    """The options that reading uses."""

    @property
    def silence_s(self) -> float | None: ...
    @property
    def max_message_bytes(self) -> int: ...


class Owner(Protocol):
    """The mailbox, as its links see it."""

    size: int

    @property
    def options(self) -> Limits: ...
    def fail_link(self, link: WireLink, error: Exception) -> None: ...
    def done(self, link: WireLink, number: int) -> None: ...
    def finished(self, rank: int) -> None: ...
    def lose(self, rank: int, how: str) -> None: ...


class Reading:
    """The links of a mailbox, and the thread that reads them at the moment."""

    def __init__(
        self,
        owner: Owner,
        lock: threading.Lock,
        delivery: Delivery,
        refuse: Callable[[str], None],
    ) -> None:
        self._owner, self._lock, self._delivery, self._refuse = owner, lock, delivery, refuse
        self._may_poll = owner.size <= num_cores()  # otherwise other ranks need the core
        self._polls = False
        """True if a thread polls before it sleeps: the kernel takes long to wake it up."""
        self._changed = threading.Condition(lock)
        self._num_waiting = 0
        self._is_driven = self._is_closed = False
        self._links: dict[int, WireLink] = {}
        self._paused: set[WireLink] = set()
        self._resumed: set[WireLink] = set()
        self._polled: set[WireLink] = set()
        """Links that are looked at again and again, as their descriptor misses bytes."""
        self._epoll = select.epoll()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._epoll.register(self._wake_read, select.EPOLLIN)

    def add(self, link: WireLink) -> None:
        """Read a new link."""
        with self._lock:
            self._links[link.descriptor] = link
            self._polls |= link.is_near and self._may_poll
            if link.stream.poll_s is not None:
                self._polled.add(link)
        self._epoll.register(link.descriptor, _READABLE)
        if link.stream.poll_s is not None:
            self.wake()

    def remove(self, link: WireLink) -> bool:
        """Stop reading a link; return False if it was not read."""
        with self._lock:
            if self._links.get(link.descriptor) is not link:
                return False
            del self._links[link.descriptor]
            for links in (self._polled, self._paused, self._resumed):
                links.discard(link)
        with contextlib.suppress(OSError, ValueError):
            self._epoll.unregister(link.descriptor)
        return True

    def links(self) -> list[WireLink]:
        """Return all links."""
        with self._lock:
            return list(self._links.values())

    def is_read(self, rank: int) -> bool:
        """Return whether more messages of a rank may arrive. With the lock."""
        return any(
            link.peer == rank and not link.is_outgoing and not link.is_closing
            for link in self._links.values()
        )

    def reads_any(self) -> bool:
        """Return whether more messages of any rank may arrive. With the lock."""
        return any(not link.is_outgoing and not link.is_closing for link in self._links.values())

    def last_read_s(self, rank: int) -> float:
        """Return when bytes of a rank arrived last, or its first link was opened."""
        return max((link.last_read_s for link in self.links() if link.peer == rank), default=0.0)

    def progress(
        self, is_enough: Callable[[], bool], timeout_s: float | None, copied_bytes: int = 0
    ) -> None:
        """Read what arrives until something happened; one thread does, others wait for it.

        With `copied_bytes`, another rank is copying them from the memory of this process.
        """
        with self._lock:
            if self._is_closed:
                raise ChannelClosedError
            if is_enough():
                return
            if self._is_driven:
                self._num_waiting += 1
                self._changed.wait(timeout_s)
                self._num_waiting -= 1
                return
            self._is_driven = True
        try:
            wait_s, poll_s = self._wait_s(timeout_s), _POLL_S + copied_bytes / _COPY_BYTES_PER_S
            self._drive(wait_s, poll_s if wait_s < 0 else min(wait_s, poll_s))
        finally:
            with self._lock:
                self._is_driven = False
                if self._num_waiting:
                    self._changed.notify_all()

    def wake(self) -> None:
        """Let threads that wait look whether they are done."""
        with self._lock:
            if self._num_waiting:
                self._changed.notify_all()
            is_driven = self._is_driven
        if is_driven:
            with contextlib.suppress(OSError):
                os.write(self._wake_write, b"w")

    def resume(self) -> None:
        """Read paused links again, since there may be room now."""
        if not self._paused:
            return
        with self._lock:
            paused, self._paused = self._paused, set()
            for link in paused:
                with contextlib.suppress(OSError, ValueError):  # about to be closed
                    self._epoll.register(link.descriptor, _READABLE)
            self._resumed |= paused  # a message may be in the buffer of the reader already
        self.wake()

    def close(self) -> None:
        """Close all links at once."""
        with self._lock:
            self._is_closed = True
            links = list(self._links.values())
            self._links.clear()
        for link in links:
            link.stream.close()
        end_s = time.monotonic() + _CLOSE_S
        while self._is_driven and time.monotonic() < end_s:
            self.wake()
            time.sleep(0.001)  # the thread that reads uses the descriptors below
        self.wake()
        self._epoll.close()
        for descriptor in (self._wake_read, self._wake_write):
            os.close(descriptor)

    def _wait_s(self, timeout_s: float | None) -> float:
        if self._resumed:
            return 0
        silence_s = self._owner.options.silence_s
        limits = [timeout_s, None if silence_s is None else silence_s / 4]
        if self._polled:
            with self._lock:
                limits += [link.stream.poll_s for link in self._polled]
        return min((limit for limit in limits if limit is not None), default=-1)

    def _poll(self, poll_s: float) -> list[tuple[int, int]]:
        """Look for events again and again for some time, without sleeping."""
        poll, end_s = self._epoll.poll, time.perf_counter() + poll_s
        events = poll(0)
        while not events and time.perf_counter() < end_s:
            events = poll(0)
        return events

    def _drive(self, timeout_s: float, poll_s: float) -> None:
        events = self._poll(poll_s) if self._polls and timeout_s else []
        if not events:
            events = self._epoll.poll(timeout_s)
        links = [self._links.get(descriptor) for descriptor, _ in events]
        if None in links:
            with contextlib.suppress(OSError):
                os.read(self._wake_read, 4096)
        if self._polled or self._resumed:
            with self._lock:
                links += [*self._polled, *self._resumed]
                self._resumed.clear()
        for link in links:
            if link is not None and self._links.get(link.descriptor) is link:
                self._read(link)

    def _read(self, link: WireLink) -> None:
        try:
            link.reader.read(link, self, self._owner.options.max_message_bytes)
        except InboxFull:
            self._pause(link)
        except (OSError, EOFError) as error:
            self._owner.fail_link(link, error)
        except FrameError as error:
            self._refuse(error.problem)
            self._owner.fail_link(link, error)

    def _pause(self, link: WireLink) -> None:
        """Stop reading a link until somebody waits for its messages.

        Its descriptor leaves the epoll: a closed one would be ready all the time.
        """
        with self._lock:
            if self._delivery.matching.awaits(link.peer):  # since a moment ago
                self._resumed.add(link)
                return
            self._paused.add(link)
            with contextlib.suppress(OSError, ValueError):
                self._epoll.unregister(link.descriptor)

    # The sink of readers.

    def begin(self, link: WireLink, header: FrameHeader, description: bytes) -> Buffer | None:
        """Handle what is for the link itself; the rest is delivered."""
        link.last_read_s = time.monotonic()
        match header.kind:
            case FrameKind.DATA | FrameKind.REMOTE | FrameKind.PART | FrameKind.CANCEL:
                return self._delivery.begin(link, header, description)
            case FrameKind.DONE:
                self._owner.done(link, header.tag)
            case FrameKind.BYE:
                link.is_closing = True
                self._owner.finished(link.peer)
            case FrameKind.LOST:
                self._owner.lose(header.tag, f"rank {link.peer} has lost it")
        return None

    def end(self, link: WireLink) -> None:
        """Complete a message."""
        link.last_read_s = time.monotonic()
        self._delivery.end(link)
