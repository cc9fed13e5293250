"""Bytes that this process sent: by TCP as the kernel counts them, and to ranks of its machine."""

import os
import socket
import stat
import struct

from talka.channels.sending import near_bytes

_BYTES_SENT_OFFSET = 200
"""Offset of tcpi_bytes_sent, and of tcpi_bytes_retrans after it, in the kernel's struct tcp_info."""


def sent_bytes() -> int:
    """Return the bytes sent so far by the TCP connections that are open now, and by near channels.

    Messages between ranks of one machine do not use TCP; what channels sent to them is added.

    Neither headers nor retransmissions are counted: on a busy machine TCP repeats segments that did
    arrive. Call it before and after some work, while the connections stay open, and take the
    difference.
    """
    total = near_bytes()
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
        end = _BYTES_SENT_OFFSET + 16
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, end)
        if len(info) < end:
            raise OSError("this kernel does not count sent bytes")
        sent, sent_again = struct.unpack_from("=QQ", info, _BYTES_SENT_OFFSET)
        return int(sent - sent_again)
