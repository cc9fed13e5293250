"""Which message is for which receive: plain code without sockets.

A message belongs to the oldest receive with its context, its tag, and its source or any source. A
message that nobody awaits yet is kept.
"""

from collections import deque
from dataclasses import dataclass

from talka.channels.operations import Buffer, Receive

Key = tuple[int, int]
"""Context and tag."""


@dataclass(slots=True, eq=False)
class Arrival:
    """A message that nobody awaited when it arrived; its body may still be arriving."""

    source: int
    description: bytes
    num_bytes: int
    data: Buffer | None = None
    """Body in this process; None if it is still in the memory of the sender."""
    remote: tuple[int, int] | None = None
    """Address of the body in the sender's memory, and the number of the message."""
    is_complete: bool = False
    receive: Receive | None = None
    """Receive that waits for the rest of the body."""


class Matching:
    """Receives without a message, and messages without a receive."""

    def __init__(self) -> None:
        self._receives: dict[Key, deque[Receive]] = {}
        self._arrivals: dict[Key, deque[Arrival]] = {}
        self.inbox_bytes = 0
        """Bytes of bodies in this process that nobody has received yet."""

    def arrived(self, key: Key, source: int) -> Receive | None:
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

    def post(self, receive: Receive) -> Arrival | None:
        """Return and remove the message for a receive; without one, the receive waits."""
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
        self._receives.setdefault(key, deque()).append(receive)
        return None

    def awaits(self, source: int) -> bool:
        """Return whether a receive waits for a message of this rank, or of any."""
        return any(
            receive.peer in (None, source)
            for waiting in self._receives.values()
            for receive in waiting
        )

    def withdraw(self, receive: Receive) -> None:
        """Remove a receive that is no longer awaited."""
        key = (receive.context, receive.tag)
        waiting = self._receives.get(key)
        if waiting is not None and receive in waiting:
            waiting.remove(receive)
            if not waiting:
                del self._receives[key]

    def lost(self, source: int, *, is_last: bool) -> list[Receive]:
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

    def discard_remote(self, source: int) -> None:
        """Forget messages whose body was in the memory of a process that has ended."""
        for key, arrivals in list(self._arrivals.items()):
            for arrival in list(arrivals):
                if arrival.source == source and not arrival.is_complete:
                    arrivals.remove(arrival)
                    if arrival.data is not None:
                        self.inbox_bytes -= arrival.num_bytes
            if not arrivals:
                del self._arrivals[key]

    def forget(self, context: int) -> None:
        """Drop receives and messages of one context."""
        for waiting in (self._receives, self._arrivals):
            for key in [key for key in waiting if key[0] == context]:
                for message in waiting.pop(key):
                    if isinstance(message, Arrival) and message.data is not None:
                        self.inbox_bytes -= message.num_bytes
