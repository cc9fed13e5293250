"""A ring of frames that are received and sent in batches by recvmmsg and sendmmsg."""

import ctypes
import errno
import mmap
import os
import socket
import sys
from typing import Any

MAX_PACKET_BYTES = 16_000
"""Longest packet that a slot holds; the interfaces of hosts are configured to send no longer ones."""
_SLOT_BYTES = 16_384
_WORD_BYTES = ctypes.sizeof(ctypes.c_uint32)
_libc = ctypes.CDLL(None, use_errno=True)


class _IoVec(ctypes.Structure):
    """`struct iovec`: the address of a buffer, and its length."""

    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class _Message(ctypes.Structure):
    """`struct mmsghdr`; the kernel writes the length of a frame that it received."""

    _fields_ = [
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint32),
        ("pieces", ctypes.c_void_p),
        ("num_pieces", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_size_t),  # an int, with the padding after it
        ("length", ctypes.c_uint32),
    ]


class Frames:
    """A ring of slots, filled at the end and emptied at the start, both in order.

    Slot s has a buffer, a `_IoVec` that refers to it and a `_Message` that refers to the piece. A free
    slot's piece has the length of the buffer, a used one's that of the frame: lengths are copied for a
    whole batch, so that no Python code runs per frame.
    """

    def __init__(self, descriptor: int, num_slots: int) -> None:
        self._descriptor, self._num_slots = descriptor, num_slots
        self._start, self._num_used = 0, 0
        self._buffers = mmap.mmap(-1, num_slots * _SLOT_BYTES)
        first = ctypes.addressof(ctypes.c_char.from_buffer(self._buffers))
        self._pieces = (_IoVec * num_slots)()
        self._messages = (_Message * num_slots)()
        for slot in range(num_slots):
            self._pieces[slot] = _IoVec(first + slot * _SLOT_BYTES, _SLOT_BYTES)
            self._messages[slot].pieces = ctypes.addressof(self._pieces[slot])
            self._messages[slot].num_pieces = 1
        low = _IoVec.length.offset
        if sys.byteorder == "big":  # the low half of a long number comes last
            low += ctypes.sizeof(ctypes.c_size_t) - _WORD_BYTES
        self._piece_lengths = _column(self._pieces, low)
        self._frame_lengths = _column(self._messages, _Message.length.offset)
        self._free_lengths = _column((ctypes.c_uint32 * num_slots)(*[_SLOT_BYTES] * num_slots), 0)

    @property
    def is_full(self) -> bool:
        """True if no slot is free."""
        return self._num_used == self._num_slots

    def receive(self) -> int:
        """Receive frames that have arrived, up to the end of the ring; return their number."""
        end = (self._start + self._num_used) % self._num_slots
        num_free = min(self._num_slots - self._num_used, self._num_slots - end)
        if num_free == 0:
            return 0
        count = self._call("recvmmsg", end, num_free, socket.MSG_DONTWAIT, None)
        self._piece_lengths[end : end + count] = self._frame_lengths[end : end + count]
        self._num_used += count
        return count

    def send(self, num_frames: int) -> int:
        """Send the oldest frames; return the number of those that the kernel dropped."""
        num_dropped = 0
        while num_frames:
            start = self._start
            wanted = min(num_frames, self._num_slots - start)
            count = self._call("sendmmsg", start, wanted, socket.MSG_DONTWAIT)
            if count == 0:  # a full queue drops a frame, as a switch does
                count, num_dropped = 1, num_dropped + 1
            self._piece_lengths[start : start + count] = self._free_lengths[:count]
            self._start = (start + count) % self._num_slots
            self._num_used -= count
            num_frames -= count
        return num_dropped

    def _call(self, function: str, slot: int, count: int, *arguments: int | None) -> int:
        """Call recvmmsg or sendmmsg on slots; return how many it served, 0 if it would block."""
        messages = ctypes.byref(self._messages, slot * ctypes.sizeof(_Message))
        served: int = getattr(_libc, function)(self._descriptor, messages, count, *arguments)
        if served >= 0:
            return served
        number = ctypes.get_errno()
        if number in (errno.EAGAIN, errno.EINTR, errno.ENOBUFS):
            return 0
        raise OSError(number, f"{function}: {os.strerror(number)}")


def _column(rows: ctypes.Array[Any], offset: int) -> memoryview:
    """Return a view of one 32-bit field of all rows of an array."""
    words = memoryview(rows).cast("B").cast("I")
    row_words = len(words) // len(rows)
    return words[offset // _WORD_BYTES :: row_words]
