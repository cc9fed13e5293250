"""Copying from the memory of another process of this machine, without a copy in the kernel.

The kernel allows it between processes of one user, unless a security module forbids it
(`kernel.yama.ptrace_scope`): then bodies travel through the socket. An acceptor tries it once for
each link.
"""

import ctypes
import os
from typing import Any, Final

_CHUNK_BYTES: Final = 1 << 30
_PR_SET_PTRACER, _ANY = 0x59616D61, ctypes.c_ulong(-1)


class _Span(ctypes.Structure):
    _fields_ = (("address", ctypes.c_void_p), ("num_bytes", ctypes.c_size_t))


_libc = ctypes.CDLL(None, use_errno=True)
_read: Any = getattr(_libc, "process_vm_readv", None)
if _read is not None:
    _read.restype = ctypes.c_ssize_t
    _read.argtypes = [
        ctypes.c_int,
        ctypes.POINTER(_Span),
        ctypes.c_ulong,
        ctypes.POINTER(_Span),
        ctypes.c_ulong,
        ctypes.c_ulong,
    ]


def allow_reading() -> None:
    """Allow other processes of this user to read the memory of this one, where Yama asks for it."""
    _libc.prctl(_PR_SET_PTRACER, _ANY, 0, 0, 0)


def address_of(buffer: Any) -> int:
    """Return the address of a buffer's first byte. The buffer may be read-only."""
    import numpy as np

    return int(np.frombuffer(buffer, np.uint8).ctypes.data)


def read_memory(pid: int, address: int, into: memoryview) -> None:
    """Copy bytes of another process into a buffer; OSError if the kernel refuses."""
    if _read is None:
        raise OSError("this platform cannot read the memory of another process")
    done, target = 0, address_of(into)
    while done < len(into):
        num_bytes = min(len(into) - done, _CHUNK_BYTES)
        local, remote = _Span(target + done, num_bytes), _Span(address + done, num_bytes)
        count = _read(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
        if count <= 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        done += count
