"""Frames between the driver and its worker processes, over a Unix socket pair.

A frame is a header with sizes, a msgpack value and then file descriptors. Its size is checked before
memory is allocated.
"""

import array
import errno
import os
import socket
import struct
from typing import Any

import msgpack

from talka.engine.descriptors import limit_explained
from talka.errors import InvalidValueError

# A function and its constants may have 256 MB each, values inside a frame 16 MB.
MAX_FRAME_BYTES = 1024 * 1024 * 1024
HEADER = struct.Struct("!QI")  # bytes of the value, number of descriptors
DESCRIPTORS_AT_ONCE = 250  # the kernel takes at most 253


def send(channel: socket.socket, value: Any, descriptors: list[int] | None = None) -> None:
    """Send one frame; blocks until the kernel has accepted all of it."""
    descriptors = descriptors or []
    channel.sendall(packed(value, len(descriptors)))
    for start in range(0, len(descriptors), DESCRIPTORS_AT_ONCE):
        socket.send_fds(channel, [b"f"], descriptors[start : start + DESCRIPTORS_AT_ONCE])


def packed(value: Any, num_descriptors: int = 0) -> bytes:
    """Return the bytes of a frame, after which descriptors are sent."""
    data: bytes = msgpack.packb(value)
    if len(data) > MAX_FRAME_BYTES:
        allowed = f"at most {MAX_FRAME_BYTES}: pass large values as inputs, not inside a function"
        raise InvalidValueError("the size of a message in bytes", len(data), allowed)
    return HEADER.pack(len(data), num_descriptors) + data


def unpacked(data: bytearray | memoryview) -> Any:
    """Return the value of a frame."""
    return msgpack.unpackb(data, strict_map_key=False)


def receive(channel: socket.socket) -> tuple[Any, list[int]]:
    """Receive one frame; EOFError if the other side has closed the channel.

    Raises DescriptorLimitError if this process cannot open all descriptors of the frame.
    """
    num_bytes, num_descriptors = HEADER.unpack(_receive_exactly(channel, HEADER.size))
    if num_bytes > MAX_FRAME_BYTES:
        raise EOFError(f"a frame of {num_bytes} bytes was announced; {MAX_FRAME_BYTES} are allowed")
    value = unpacked(_receive_exactly(channel, num_bytes))
    descriptors: list[int] = []
    for _ in range(0, num_descriptors, DESCRIPTORS_AT_ONCE):
        descriptors += _receive_descriptors(channel)
    if len(descriptors) < num_descriptors:  # the kernel drops those beyond the limit
        for descriptor in descriptors:
            os.close(descriptor)
        with limit_explained():
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    return value, descriptors


def _receive_exactly(channel: socket.socket, num_bytes: int) -> bytearray:
    data = bytearray(num_bytes)
    view = memoryview(data)
    while view:
        count = channel.recv_into(view)
        if count == 0:
            raise EOFError("the other side has closed the channel")
        view = view[count:]
    return data


def _receive_descriptors(channel: socket.socket) -> list[int]:
    data, descriptors = receive_some(channel, 1)
    if not data:
        raise EOFError("the other side has closed the channel")
    return descriptors


def receive_some(channel: socket.socket, max_bytes: int) -> tuple[bytes, list[int]]:
    """Receive some bytes and the descriptors that were sent with them."""
    descriptors = array.array("i")
    space = socket.CMSG_SPACE(DESCRIPTORS_AT_ONCE * descriptors.itemsize)
    # MSG_CMSG_CLOEXEC: processes that the worker starts must not inherit them
    data, ancillary, _, _ = channel.recvmsg(max_bytes, space, socket.MSG_CMSG_CLOEXEC)
    for _, _, raw in ancillary:
        descriptors.frombytes(raw[: len(raw) - len(raw) % descriptors.itemsize])
    return data, list(descriptors)
