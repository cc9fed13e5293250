"""The end of a channel that never blocks: frames arrive in pieces, and leave as the kernel has room.

A process that serves several others uses it, so that one of them, stopped in the middle of a frame,
does not delay the rest.
"""

import contextlib
import errno
import os
import socket
import threading
from collections import deque
from typing import Any

from talka.engine.descriptors import limit_explained
from talka.engine.local import wire

_RECEIVE_BYTES = 1 << 18
_RECEIVES_AT_ONCE = 64  # then others have their turn


class FrameChannel:
    """Frames from and to one process. One thread receives; several may call `add`."""

    def __init__(self, channel: socket.socket) -> None:
        channel.settimeout(0)
        self._channel = channel
        self._arrived = bytearray()
        self._descriptors: deque[int] = deque()
        self._lock = threading.Lock()
        self._leaving: deque[memoryview] = deque()
        self.is_closed = False
        """True if the other side has closed the channel, or this one has."""

    def fileno(self) -> int:
        """Return the descriptor to poll."""
        return self._channel.fileno()

    @property
    def has_leaving(self) -> bool:
        """True if frames wait until the kernel has room for them."""
        return bool(self._leaving) and not self.is_closed

    def add(self, frame: Any) -> None:
        """Send a frame as soon as possible; it is dropped if the channel is closed."""
        with self._lock:
            self._leaving.append(memoryview(wire.packed(frame)))
        self.flush()

    def flush(self) -> None:
        """Send what the kernel has room for."""
        with self._lock:
            try:
                while self._leaving and not self.is_closed:
                    num_sent = self._channel.send(self._leaving[0])
                    if num_sent < len(self._leaving[0]):
                        self._leaving[0] = self._leaving[0][num_sent:]
                    else:
                        self._leaving.popleft()
            except BlockingIOError:
                pass
            except OSError:  # frames that were received before are still read
                self._leaving.clear()

    def receive(self) -> list[tuple[Any, list[int]]]:
        """Return the frames that have arrived completely, each with its descriptors.

        Raises DescriptorLimitError if this process cannot open all descriptors of a frame.
        """
        try:
            for _ in range(_RECEIVES_AT_ONCE):
                if self.is_closed:
                    break
                data, descriptors = wire.receive_some(self._channel, _RECEIVE_BYTES)
                self._arrived += data
                self._descriptors += descriptors
                self.is_closed = not data
        except BlockingIOError:
            pass
        except ConnectionError:
            self.is_closed = True
        frames = []
        while (frame := self._next()) is not None:
            frames.append(frame)
        return frames

    def finish(self) -> None:
        """Declare that no more frames are sent; those of the other side can still be received."""
        with self._lock, contextlib.suppress(OSError):
            self._leaving.clear()
            self._channel.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close the channel and all descriptors that were received but not taken."""
        with self._lock:
            self.is_closed = True
            self._leaving.clear()
            self._channel.close()
        while self._descriptors:
            os.close(self._descriptors.pop())

    def _next(self) -> tuple[Any, list[int]] | None:
        """Take the first frame, if it is complete: its header, its value, a byte per batch of descriptors."""
        start = wire.HEADER.size
        if len(self._arrived) < start:
            return None
        num_bytes, num_descriptors = wire.HEADER.unpack_from(self._arrived)
        if num_bytes > wire.MAX_FRAME_BYTES:
            self.is_closed = True
            return None
        num_batches = -(-num_descriptors // wire.DESCRIPTORS_AT_ONCE)
        end = start + num_bytes + num_batches
        if len(self._arrived) < end:
            return None
        value = wire.unpacked(self._arrived[start : start + num_bytes])
        del self._arrived[:end]
        if len(self._descriptors) < num_descriptors:  # the kernel drops those beyond the limit
            with limit_explained():
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return value, [self._descriptors.popleft() for _ in range(num_descriptors)]
