"""Which message is for which receive: plain code without sockets.

A message belongs to the oldest receive with its context, its tag, and its source or any source. A
message without a receive is kept.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from talka.channels.operations import Buffer, ReceiveOperation

Key = tuple[int, int]
"""Context and tag."""


class RemotePart(NamedTuple):
    """A part of a body in the memory of its sender."""

    address: int
    number: int
    offset: int
    num_bytes: int


@dataclass(slots=True, eq=False)
class Arrival:
    """A message that has begun to arrive."""

    source: int
    description: bytes
    num_bytes: int
    is_remote: bool = False
    data: Buffer | None = None
    """Memory for a body that came through the stream before its receive was posted."""
    receive: ReceiveOperation | None = None
    """Receive that the message is for; None if there is none yet."""
    parts: list[RemotePart] = field(default_factory=list)
    """Parts of a remote body that are read when the receive is posted."""
    num_announced: int = 0
    """Bytes of all parts that were announced."""
    num_read: int = 0
    """Bytes that are in this process."""
    is_dropped: bool = False
    """True if nobody will receive it: parts that still come are answered and not read."""

    @property
    def is_complete(self) -> bool:
        """True if the whole body is in this process."""
        return self.num_read == self.num_bytes


class Matching:
    """Receives without a message, and messages without a receive."""

    def __init__(self) -> None:
        self._receives: dict[Key, deque[ReceiveOperation]] = {}
        self._arrivals: dict[Key, deque[Arrival]] = {}
        self.inbox_bytes = 0
        """Bytes of bodies in this process that wait for a receive."""

    def arrived(self, key: Key, source: int) -> ReceiveOperation | None:
        """Return and remove the receive that a new message is for."""
        waiting = self._receives.get(key)
        if waiting is None:
            return None
        for receive in waiting:
            if receive.peer in (None, source):
                waiting.remove(receive)
                if not waiting:
                    del self._receives[key]
                return receive
        return None

    def keep(self, key: Key, arrival: Arrival) -> None:
        """Keep a message until it is received."""
        self._arrivals.setdefault(key, deque()).append(arrival)
        if arrival.data is not None:
            self.inbox_bytes += arrival.num_bytes

    def post(self, receive: ReceiveOperation, *, is_first: bool = False) -> Arrival | None:
        """Return and remove the message for a receive; without one, the receive waits.

        With `is_first`, it waits before all others: its message was taken away from it.
        """
        key = (receive.context, receive.tag)
        arrivals = self._arrivals.get(key)
        if arrivals is not None:
            for arrival in arrivals:
                if receive.peer in (None, arrival.source):
                    arrivals.remove(arrival)
                    if not arrivals:
                        del self._arrivals[key]
                    if arrival.data is not None:
                        self.inbox_bytes -= arrival.num_bytes
                    return arrival
        waiting = self._receives.setdefault(key, deque())
        waiting.appendleft(receive) if is_first else waiting.append(receive)
        return None

    def awaits(self, source: int) -> bool:
        """Return whether a receive waits for a message of this rank, or of any."""
        return any(
            receive.peer in (None, source)
            for waiting in self._receives.values()
            for receive in waiting
        )

    def withdraw(self, receive: ReceiveOperation) -> None:
        """Remove a receive that is no longer awaited."""
        key = (receive.context, receive.tag)
        waiting = self._receives.get(key)
        if waiting is not None and receive in waiting:
            waiting.remove(receive)
            if not waiting:
                del self._receives[key]

    def lost(self, source: int, *, is_last: bool) -> list[ReceiveOperation]:
        """Return and remove the receives that a rank can no longer fulfil.

        Those from any rank are among them only if no other rank is left.
        """
        failed = []
        for key, waiting in list(self._receives.items()):
            for receive in list(waiting):
                if receive.peer == source or (receive.peer is None and is_last):
                    waiting.remove(receive)
                    failed.append(receive)
            if not waiting:
                del self._receives[key]
        return failed

    def needing(self, rank: int) -> list[ReceiveOperation]:
        """Return and remove the receives of collectives that a rank takes part in."""
        failed = [
            receive
            for waiting in self._receives.values()
            for receive in waiting
            if rank in receive.needs
        ]
        for receive in failed:
            self.withdraw(receive)
        return failed

    def discard_incomplete(self, source: int) -> None:
        """Forget messages whose body a process that has ended did not send completely."""
        for key, arrivals in list(self._arrivals.items()):
            for arrival in list(arrivals):
                if arrival.source == source and not arrival.is_complete:
                    arrivals.remove(arrival)
                    if arrival.data is not None:
                        self.inbox_bytes -= arrival.num_bytes
            if not arrivals:
                del self._arrivals[key]

    def discard(self, arrival: Arrival) -> None:
        """Forget one message."""
        for key, arrivals in list(self._arrivals.items()):
            if arrival in arrivals:
                arrivals.remove(arrival)
                if arrival.data is not None:
                    self.inbox_bytes -= arrival.num_bytes
            if not arrivals:
                del self._arrivals[key]

    def forget(self, context: int) -> tuple[list[ReceiveOperation], list[Arrival]]:
        """Return and remove the receives and messages of one context."""
        receives, arrivals = list[ReceiveOperation](), list[Arrival]()
        for key in [key for key in self._receives if key[0] == context]:
            receives += self._receives.pop(key)
        for key in [key for key in self._arrivals if key[0] == context]:
            arrivals += self._arrivals.pop(key)
        self.inbox_bytes -= sum(each.num_bytes for each in arrivals if each.data is not None)
        return receives, arrivals
