"""Segments: unnamed files that hold many values each and are mapped without a copy.

A segment is anonymous shared memory (memfd) or an unlinked file on disk. It has no name, so no end of
the process leaves it behind, and no limit of `/dev/shm` applies; other processes of the job read it
through its descriptor. Descriptors are scarce (often 1,024 per process), so small values share a
segment, a mapping keeps no descriptor open, and `max_open` limits how many segments the store keeps.
"""

import contextlib
import ctypes
import mmap
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from talka.engine.descriptors import descriptor_limit, limit_explained
from talka.files import UnnamedFile, unnamed_file

# A segment of this size takes no further values: its memory is freed when all of its values are.
MIN_SEGMENT_BYTES = 1024 * 1024
MIN_OPEN = 8
"""Segments that a store may keep open even if the limit is lower."""
_PAGE_BYTES: Final = mmap.ALLOCATIONGRANULARITY
_open: set[int] = set()  # descriptors of all segments of this process

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def num_open() -> int:
    """Return the number of descriptors of open segments in this process."""
    return len(_open)


def max_open() -> int:
    """Return the number of segments that a store should keep open: a quarter of the limit."""
    return max(MIN_OPEN, descriptor_limit() // 4)


def max_in_message() -> int:
    """Return the number of new segments that one message should have at most.

    The receiver needs a descriptor for each.
    """
    return min(128, max(4, descriptor_limit() // 8))


class StorageSegment(UnnamedFile):
    """An unnamed file that holds values one after another."""

    def __init__(self, descriptor: int, *, num_bytes: int = 0, on_disk: bool) -> None:
        super().__init__(descriptor)
        self.num_bytes, self.on_disk = num_bytes, on_disk
        self._lock = threading.Lock()
        self._mapped: pa.Buffer | None = None
        _open.add(descriptor)

    @classmethod
    def create(cls, folder: Path | None = None) -> "StorageSegment":
        """Make an empty segment in shared memory, or on disk in `folder`."""
        with limit_explained():
            descriptor = os.memfd_create("talka") if folder is None else unnamed_file(folder)
        return cls(descriptor, on_disk=folder is not None)

    def close(self) -> None:
        _open.discard(self.descriptor)  # first: once closed, the number may be in use again
        super().close()

    @contextlib.contextmanager
    def appending(self) -> Iterator["Sink"]:
        """Yield a sink for one more value, which is added unless the block raises."""
        with self._lock:
            sink = Sink(self, -(-self.num_bytes // _PAGE_BYTES) * _PAGE_BYTES)
            yield sink
            self.num_bytes = sink.start + sink.tell()

    def buffer(self, start: int, num_bytes: int) -> pa.Buffer:
        """Return a range of the file, mapped read-only; it stays valid without the descriptor."""
        if num_bytes == 0:
            return pa.py_buffer(b"")
        mapped = self._mapped
        if mapped is None or mapped.size < start + num_bytes:  # the segment has grown
            mapped = self._mapped = _Mapping(self.descriptor, self.num_bytes).buffer()
        return mapped.slice(start, num_bytes)


class Sink:
    """A file object that appends to a segment, for `pyarrow.PythonFile`.

    A plain file does not work for two reasons: pyarrow ignores how much a `write` wrote, which is at
    most 2 GiB, and expects positions to start at 0.
    """

    closed = False

    def __init__(self, file: UnnamedFile, start: int) -> None:
        self.start = start
        self._file, self._end = file, start

    def write(self, data: Any) -> int:
        """Write all of it, or raise OSError."""
        before, self._end = self._end, self._file.write_at(data, self._end)
        return self._end - before

    def tell(self) -> int:
        return self._end - self.start

    def flush(self) -> None:
        """Do nothing, as nothing is buffered."""

    def close(self) -> None:
        """Do nothing: the segment stays open."""


class Shelf:
    """Distributes values over few segments: a new one is made when the last is large enough."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._last: StorageSegment | None = None

    def segment(self, min_bytes: float) -> StorageSegment:
        """Return the segment for the next value: a new one if the last has `min_bytes` bytes."""
        last = self._last
        if last is None or last.num_bytes >= max(MIN_SEGMENT_BYTES, min_bytes):
            last = self._last = StorageSegment.create(self._folder)
        return last


class _Mapping:
    """A file mapped into memory. Python's `mmap` would keep a second descriptor open."""

    def __init__(self, descriptor: int, num_bytes: int) -> None:
        self._num_bytes = num_bytes
        address = _libc.mmap(None, num_bytes, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
        if address == ctypes.c_void_p(-1).value:
            self._address = None
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self._address = address

    def buffer(self) -> pa.Buffer:
        return pa.foreign_buffer(self._address, self._num_bytes, base=self)

    def __del__(self, munmap: Any = _libc.munmap) -> None:
        if self._address is not None:
            munmap(self._address, self._num_bytes)
