"""Storage for arrays: in memory up to a budget, beyond it in one unnamed file.

The file has no name, so nothing is left behind however the process ends.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from talka.errors import StorageFullError
from talka.files import unnamed_file
from talka.units import format_bytes


class Spool:
    """Store of arrays: one thread adds them, any thread may read parts of them.

    >>> spool = Spool(Path("."), memory_bytes=0)
    >>> spool.add(np.arange(5))[1:3]
    array([1, 2])
    """

    def __init__(self, folder: Path, *, memory_bytes: int) -> None:
        self._folder, self._memory_bytes = folder, memory_bytes
        self._file: UnnamedFile | None = None
        self._held_bytes = 0

    def add(self, array: NDArray[Any]) -> "Stored":
        """Store an array; slices of the result are views of memory or copies from disk."""
        if self._held_bytes + array.nbytes <= self._memory_bytes:
            self._held_bytes += array.nbytes
            return array
        if self._file is None:
            self._file = UnnamedFile(self._folder, self._memory_bytes)
        offset = self._file.append(array)
        return OnDisk(self._file, offset, array.dtype, len(array))


class OnDisk:
    """A one-dimensional array in an unnamed file."""

    __slots__ = ("_dtype", "_file", "_length", "_offset")

    def __init__(self, file: "UnnamedFile", offset: int, dtype: np.dtype[Any], length: int) -> None:
        self._file, self._offset, self._dtype, self._length = file, offset, dtype, length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, where: slice) -> NDArray[Any]:
        start, stop, _ = where.indices(self._length)
        part = np.empty(max(0, stop - start), self._dtype)
        self._file.read_into(part, self._offset + start * self._dtype.itemsize)
        return part


Stored = NDArray[Any] | OnDisk
"""A one-dimensional array in a spool: it has a length and can be sliced."""


class UnnamedFile:
    """Bytes on disk that vanish with the last reference."""

    def __init__(self, folder: Path, budget_bytes: int) -> None:
        self._folder, self._budget_bytes = folder, budget_bytes
        self._handle = Handle(unnamed_descriptor(folder, budget_bytes))
        self.num_bytes = 0

    def append(self, array: NDArray[Any]) -> int:
        """Write at the end and say where; an array that does not fit leaves the rest as it was."""
        start = self.num_bytes
        view = np.ascontiguousarray(array).view(np.uint8).data
        offset = start
        try:
            while view:
                written = os.pwrite(self._handle.descriptor, view, offset)
                view, offset = view[written:], offset + written
        except OSError as error:
            raise storage_full(error, self._folder, self._budget_bytes) from error
        self.num_bytes = offset
        return start

    def read_into(self, array: NDArray[Any], offset: int) -> None:
        view = array.view(np.uint8).data
        while view:
            count = os.preadv(self._handle.descriptor, [view], offset)
            view, offset = view[count:], offset + count


class Handle:
    """Owns a file descriptor."""

    __slots__ = ("descriptor",)

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __del__(self) -> None:
        os.close(self.descriptor)


def unnamed_descriptor(folder: Path, budget_bytes: int) -> int:
    """A new file without a name; the caller owns the descriptor."""
    try:
        return unnamed_file(folder)
    except OSError as error:
        raise storage_full(error, folder, budget_bytes) from error


def storage_full(error: OSError, folder: Path, budget_bytes: int) -> StorageFullError:
    problem = error.strerror or str(error)
    return StorageFullError(str(folder), problem, format_bytes(budget_bytes))
