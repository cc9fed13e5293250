"""Buffers that are used again: copies of what is sent, and memory for what is combined.

Fresh memory costs more than a copy: the kernel clears every page of it.
"""

import threading
from typing import Final

from talka.channels.operations import Buffer, new_buffer

MIN_PART_BYTES: Final = 1 << 17
MAX_PART_BYTES: Final = 1 << 21
_MAX_KEPT: Final = 16


class PartBuffers:
    """A pool of buffers of `MAX_PART_BYTES`; one that was used last is still in cache."""

    def __init__(self) -> None:
        self._free: list[Buffer] = []
        self._lock = threading.Lock()

    def take(self) -> Buffer:
        """Return a buffer with undefined content."""
        with self._lock:
            if self._free:
                return self._free.pop()
        return new_buffer(MAX_PART_BYTES)

    def copy(self, part: Buffer) -> Buffer:
        """Return a buffer that begins with a copy of a part of a message."""
        whole = self.take()
        whole[: len(part)] = part
        return whole

    def give_back(self, whole: Buffer) -> None:
        """Use a buffer again."""
        with self._lock:
            if len(self._free) < _MAX_KEPT:
                self._free.append(whole)


def part_bytes(num_bytes: int) -> int:
    """Return the length of parts: several, so that the first is read while the next is copied.

    >>> part_bytes(100_000), part_bytes(1_000_000), part_bytes(100_000_000)
    (131072, 250000, 2097152)
    """
    return max(MIN_PART_BYTES, min(MAX_PART_BYTES, -(-num_bytes // 4)))
