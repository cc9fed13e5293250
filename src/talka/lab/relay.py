"""The process that makes a lab's links long: it holds every frame for the latency, then sends it on.

    host 0: eth0 [tbf] === to-host0 -- redirected --> late --- [relay: queue] ---> bridge --> to-host1 ...

All frames that hosts send arrive at one socket and leave through it in the same order, so one queue is
enough and nothing is reordered; the bridge finds the receiver. Frames are received and sent in batches
(recvmmsg, sendmmsg), and no Python code runs per frame. A packet that the kernel would cut into frames
only at the receiver passes in one piece, described by a virtio_net_hdr before it.

`Schedule` decides when frames leave, without sockets and clocks; `Relay` has both.
"""

import collections
import contextlib
import ctypes
import errno
import mmap
import os
import select
import signal
import socket
import sys
import time
from typing import NamedTuple, NoReturn

MAX_PACKET_BYTES = 16_000
"""Longest packet that a slot holds; the interfaces of hosts are told to make no longer ones."""
_SLOT_BYTES = 16_384
_MIN_SLOTS, _MAX_SLOTS = 1_024, 32_768
_HOST_BYTES_PER_S = 12.5e6
_MEAN_FRAME_BYTES = 700  # between a full frame, or several in one piece, and an acknowledgement
_MIN_TICK_S, _MAX_TICK_S = 50e-6, 500e-6
_TICKS_PER_LATENCY = 40  # a tick of 2.5% of the latency
_BUFFER_BYTES = 1 << 25  # of the socket, for frames that arrive while the relay does not run
_NICENESS = -15  # above the ranks, which may use all cores
_ETH_P_ALL, _SOL_PACKET, _PACKET_VNET_HDR, _PACKET_IGNORE_OUTGOING = 3, 263, 15, 23
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_PR_SET_TIMERSLACK = 29
_MAX_DESCRIPTORS = 4_096
_libc = ctypes.CDLL(None, use_errno=True)


class Batch(NamedTuple):
    """Frames that were received together."""

    due_s: float
    num_frames: int


class Schedule:
    """The queue of batches: when each is due, and how long to sleep.

    A tick is the shortest sleep while frames arrive. Frames are received and sent within half a tick of
    their time, so the latency is right on average and wrong by one tick at most. Times are seconds of
    any clock, passed by the caller.
    """

    def __init__(self, latency_s: float) -> None:
        self.latency_s = latency_s
        self.tick_s = min(max(latency_s / _TICKS_PER_LATENCY, _MIN_TICK_S), _MAX_TICK_S)
        self.num_frames = 0
        self._batches: collections.deque[Batch] = collections.deque()

    def received(self, num_frames: int, *, now_s: float, slept_s: float) -> None:
        """Add frames that arrived during the last `slept_s` seconds: half of it ago, on average."""
        self._batches.append(Batch(now_s - slept_s / 2 + self.latency_s, num_frames))
        self.num_frames += num_frames

    def take_due(self, now_s: float) -> int:
        """Remove the frames that are due in less than half a tick, and return their number."""
        num_due = 0
        while self._batches and self._batches[0].due_s <= now_s + self.tick_s / 2:
            num_due += self._batches.popleft().num_frames
        self.num_frames -= num_due
        return num_due

    def wait_s(self, now_s: float) -> float | None:
        """Return the seconds until the first frame is due; None if there are no frames."""
        return max(self._batches[0].due_s - now_s, 0.0) if self._batches else None


class _IoVec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class _Message(ctypes.Structure):
    """`struct mmsghdr`."""

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
    """A ring of slots for frames, with the arrays that recvmmsg and sendmmsg read and write.

    Slots are filled at the end and emptied at the start, both in order.
    """

    def __init__(self, descriptor: int, num_slots: int) -> None:
        self._descriptor, self._num_slots = descriptor, num_slots
        self._memory = mmap.mmap(-1, num_slots * _SLOT_BYTES)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._pieces = (_IoVec * num_slots)()
        self._messages = (_Message * num_slots)()
        for slot in range(num_slots):
            self._pieces[slot] = _IoVec(start + slot * _SLOT_BYTES, _SLOT_BYTES)
            self._messages[slot].pieces = ctypes.addressof(self._pieces[slot])
            self._messages[slot].num_pieces = 1
        # The same memory as rows of machine words, to copy lengths without a loop over frames.
        words = ctypes.sizeof(ctypes.c_uint32)
        self._piece_words = memoryview(self._pieces).cast("B").cast("I")
        self._message_words = memoryview(self._messages).cast("B").cast("I")
        self._piece_row = ctypes.sizeof(_IoVec) // words
        self._message_row = ctypes.sizeof(_Message) // words
        high_first = ctypes.sizeof(ctypes.c_size_t) // words - 1 if sys.byteorder == "big" else 0
        self._piece_length = _IoVec.length.offset // words + high_first
        self._message_length = _Message.length.offset // words
        self._full = memoryview((ctypes.c_uint32 * num_slots)(*[_SLOT_BYTES] * num_slots))
        self._full = self._full.cast("B").cast("I")
        self._start, self._num_used = 0, 0

    def receive(self) -> int:
        """Receive frames that have arrived, up to the end of the ring; return their number."""
        end = (self._start + self._num_used) % self._num_slots
        num_free = min(self._num_slots - self._num_used, self._num_slots - end)
        if num_free == 0:
            return 0
        count = self._call("recvmmsg", end, num_free, socket.MSG_DONTWAIT, None)
        self._lengths(end, count)[:] = self._message_words[
            end * self._message_row + self._message_length : (end + count)
            * self._message_row : self._message_row
        ]
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
            self._lengths(start, count)[:] = self._full[:count]
            self._start = (start + count) % self._num_slots
            self._num_used -= count
            num_frames -= count
        return num_dropped

    @property
    def is_full(self) -> bool:
        """True if no slot is free."""
        return self._num_used == self._num_slots

    def _lengths(self, slot: int, count: int) -> memoryview:
        row = self._piece_row
        return self._piece_words[slot * row + self._piece_length : (slot + count) * row : row]

    def _call(self, function: str, slot: int, count: int, *arguments: int | None) -> int:
        """Call recvmmsg or sendmmsg on slots; return how many it served, 0 if it has to wait."""
        messages = ctypes.byref(self._messages, slot * ctypes.sizeof(_Message))
        served: int = getattr(_libc, function)(self._descriptor, messages, count, *arguments)
        if served >= 0:
            return served
        number = ctypes.get_errno()
        if number in (errno.EAGAIN, errno.EINTR, errno.ENOBUFS):
            return 0
        raise OSError(number, f"{function}: {os.strerror(number)}")


def open_socket(device: str) -> socket.socket:
    """Return a socket that receives all frames of a device, and sends frames through it."""
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    for option, value in ((_PACKET_VNET_HDR, 1), (_PACKET_IGNORE_OUTGOING, 1)):
        end.setsockopt(_SOL_PACKET, option, value)
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        end.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)  # as much as others may have
    with contextlib.suppress(PermissionError):
        for option in (_SO_SNDBUFFORCE, _SO_RCVBUFFORCE):
            end.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
    end.bind((device, _ETH_P_ALL))
    return end


def num_slots(num_hosts: int, latency_s: float) -> int:
    """Return how many frames the relay has to hold if all hosts send 100 Mbit/s.

    >>> num_slots(4, 0.02), num_slots(100, 0.2)
    (2453, 32768)
    """
    in_flight = num_hosts * _HOST_BYTES_PER_S * latency_s / _MEAN_FRAME_BYTES
    return min(_MIN_SLOTS + round(in_flight), _MAX_SLOTS)


def start(end: socket.socket, latency_s: float, num_hosts: int) -> int:
    """Start the relay in a new process; return its process id.

    It ends with the lab. If the kernel refuses a call, its exit code is the number of the error.
    """
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        os.closerange(3, end.fileno())
        os.closerange(end.fileno() + 1, _MAX_DESCRIPTORS)
        with contextlib.suppress(OSError):  # without rights it has to compete with the ranks
            os.setpriority(os.PRIO_PROCESS, 0, _NICENESS)
        _libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
        _relay(end, latency_s, num_slots(num_hosts, latency_s))
    except OSError as error:
        code = error.errno or code
    finally:
        os._exit(code)


def _relay(end: socket.socket, latency_s: float, num_slots: int) -> NoReturn:
    """Hold each frame that arrives at `end` for the latency."""
    schedule, frames = Schedule(latency_s), Frames(end.fileno(), num_slots)
    slept_s = 0.0
    while True:
        count = frames.receive()
        now_s = time.monotonic()
        if count:
            schedule.received(count, now_s=now_s, slept_s=slept_s)
        if num_due := schedule.take_due(now_s):
            frames.send(num_due)
        if count or frames.is_full:
            time.sleep(schedule.tick_s)  # more frames will follow: receive them together
            slept_s = schedule.tick_s
        else:
            select.select([end], [], [], schedule.wait_s(time.monotonic()))
            slept_s = 0.0
