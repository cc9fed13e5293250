"""The process that makes a lab's links long: it holds every frame for the latency, then sends it on.

    host 0: eth0 [tbf] === to-host0 -- redirected --> late --- [relay: queue] ---> bridge --> to-host1 ...

All frames that hosts send arrive at one socket and leave through it in the same order, so one queue is
enough and nothing is reordered; the bridge finds the receiver. Frames are received and sent in batches
(recvmmsg, sendmmsg), and no Python code runs per frame. A packet that the kernel would cut into frames
only at the receiver passes in one piece, described by a virtio_net_hdr before it.

`Schedule` decides when frames leave, without sockets and clocks.
"""

import collections
import contextlib
import ctypes
import os
import select
import signal
import socket
import time
from typing import NamedTuple, NoReturn

from talka.lab.frames import Frames

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
_DESCRIPTOR, _MAX_DESCRIPTORS = 3, 65_536  # `select` takes low numbers only
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
        self._batches: collections.deque[Batch] = collections.deque()

    def received(self, num_frames: int, *, now_s: float, slept_s: float) -> None:
        """Add frames that arrived during the last `slept_s` seconds: half of it ago, on average."""
        self._batches.append(Batch(now_s - slept_s / 2 + self.latency_s, num_frames))

    def take_due(self, now_s: float) -> int:
        """Remove the frames that are due in less than half a tick, and return their number."""
        num_due = 0
        while self._batches and self._batches[0].due_s <= now_s + self.tick_s / 2:
            num_due += self._batches.popleft().num_frames
        return num_due

    def wait_s(self, now_s: float) -> float | None:
        """Return the seconds until the first frame is due; None without frames."""
        return max(self._batches[0].due_s - now_s, 0.0) if self._batches else None


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
        os.dup2(end.fileno(), _DESCRIPTOR)
        os.closerange(_DESCRIPTOR + 1, _MAX_DESCRIPTORS)
        with contextlib.suppress(OSError):  # without rights it has to compete with the ranks
            os.setpriority(os.PRIO_PROCESS, 0, _NICENESS)
        _libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
        _relay(_DESCRIPTOR, Schedule(latency_s), num_slots(num_hosts, latency_s))
    except OSError as error:
        code = error.errno or code
    finally:
        os._exit(code)


def _relay(end: int, schedule: Schedule, num_slots: int) -> NoReturn:
    """Hold each frame that arrives at a socket for the latency."""
    frames = Frames(end, num_slots)
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
