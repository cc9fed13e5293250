"""Sends and receives in progress."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

Buffer = memoryview


class Waiter(Protocol):
    """The part of a mailbox that an operation uses."""

    def wait(self, operation: "Operation", timeout_s: float | None) -> None: ...


class Operation:
    """A send or a receive in progress; `wait` raises its error."""

    __slots__ = ("_waiter", "error", "is_done", "needs", "peer", "tag")

    def __init__(self, waiter: Waiter, peer: int | None, tag: int) -> None:
        self._waiter, self.peer, self.tag = waiter, peer, tag
        self.is_done = False
        self.error: Exception | None = None
        self.needs: frozenset[int] = frozenset()
        """Ranks without which it may never be done: those of a collective."""

    @property
    def copied_bytes(self) -> int:
        """Bytes that the other rank is copying from the memory of this process."""
        return 0

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until it is done.

        Raises LostWorkerError if the other rank has ended, and ChannelTimeoutError.
        """
        if not self.is_done:
            self._waiter.wait(self, timeout_s)
        if self.error is not None:
            raise self.error


class SendOperation(Operation):
    """A message on its way out. When it is done, its memory may be changed."""

    __slots__ = ("body", "give_back", "num_bytes")

    def __init__(self, waiter: Waiter, peer: int, tag: int, num_bytes: int) -> None:
        super().__init__(waiter, peer, tag)
        self.num_bytes = num_bytes
        self.body: Buffer | None = None
        """Body that the receiver reads from the memory of this process."""
        self.give_back: Callable[[Buffer], None] | None = None
        """Called with the body when the receiver has read it."""

    @property
    def copied_bytes(self) -> int:
        return self.num_bytes if self.body is not None else 0

    def __str__(self) -> str:
        return f"send to rank {self.peer} with tag {self.tag}"


class ReceiveOperation(Operation):
    """A message that is awaited: from one rank, or from any."""

    __slots__ = ("context", "data", "description", "into", "is_exact", "source")

    def __init__(
        self, waiter: Waiter, peer: int | None, context: int, tag: int, into: Buffer | None
    ) -> None:
        super().__init__(waiter, peer, tag)
        self.context, self.into = context, into
        self.is_exact = False
        """True if a message that is shorter than `into` is an error."""
        self.source = -1
        """Rank that sent it; valid when it is done."""
        self.description = b""
        self.data: Buffer = memoryview(b"")
        """Body: the beginning of `into`, or new memory."""

    def reset(self) -> None:
        """Forget the message that was assigned to it."""
        self.source, self.description, self.data = -1, b"", memoryview(b"")
        self.error = None

    def room_for(self, num_bytes: int) -> Buffer:
        """Return the memory for a body; ValueError if it does not fit into `into`."""
        if self.into is None:
            self.data = new_buffer(num_bytes)
        elif num_bytes == len(self.into) or (num_bytes < len(self.into) and not self.is_exact):
            self.data = self.into[:num_bytes]
        else:
            raise ValueError(
                f"a message of {num_bytes} bytes arrived from rank {self.source} for a buffer of "
                f"{len(self.into)}"
            )
        return self.data

    def __str__(self) -> str:
        source = "any rank" if self.peer is None else f"rank {self.peer}"
        return f"receive from {source} with tag {self.tag}"


def new_buffer(num_bytes: int) -> Buffer:
    """Return memory with undefined content: clearing it would take as long as receiving."""
    return bytes_of(np.empty(num_bytes, np.uint8))


def bytes_of(array: "np.ndarray[Any, Any]") -> Buffer:
    """Return the memory of a contiguous array as bytes."""
    if not array.nbytes:
        return memoryview(bytearray())  # writable, as others are
    flat: Any = array.reshape(-1).view(np.uint8)
    return memoryview(flat)
