"""Bytes that this process sent, as counted by the kernel for each TCP connection."""

import os
import socket
import stat
import struct

_BYTES_SENT_OFFSET = (
    200  # offset of tcpi_bytes_sent in the kernel's struct tcp_info (since Linux 4.19)
)


def sent_bytes() -> int:
    """Return the bytes sent so far by the TCP connections that are open now.

    Headers are not counted, retransmissions are. Call it before and after some work, while the
    connections stay open, and take the difference.
    """
    total = 0
    for entry in os.listdir("/proc/self/fd"):
        descriptor = int(entry)
        try:
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                total += _sent_by(descriptor)
        except OSError:
            continue  # closed in the meantime, or not a TCP socket
    return total


def _sent_by(descriptor: int) -> int:
    connection = socket.socket(fileno=os.dup(descriptor))
    with connection:
        if connection.family not in (socket.AF_INET, socket.AF_INET6):
            return 0
        end = _BYTES_SENT_OFFSET + 8
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, end)
        if len(info) < end:
            raise OSError("this kernel does not count sent bytes")
        [count] = struct.unpack_from("=Q", info, _BYTES_SENT_OFFSET)
        return int(count)
