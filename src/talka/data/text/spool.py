"""Storage for arrays: in memory up to a budget, beyond it in one unnamed file.

The file has no name, so nothing is left behind however the process ends.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from talka.errors import StorageFullError
from talka.files import UnnamedFile, unnamed_file
from talka.units import format_bytes


# Not the budget of the engine's store: a spool only grows, and an array stays where it was put. The
# store moves the least recently used output to disk, from any thread, and frees what is released.
class Spool:
    """Store of arrays: one thread adds them, any thread may read parts of them.

    >>> spool = Spool(Path("."), memory_bytes=0)
    >>> spool.add(np.arange(5))[1:3]
    array([1, 2])
    """

    def __init__(self, folder: Path, *, memory_bytes: int) -> None:
        self._folder, self._memory_bytes = folder, memory_bytes
        self._file: SpoolFile | None = None
        self._held_bytes = 0

    def add(self, array: NDArray[Any]) -> "Stored":
        """Store an array; slices of the result are views of memory or copies from disk."""
        if self._held_bytes + array.nbytes <= self._memory_bytes:
            self._held_bytes += array.nbytes
            return array
        if self._file is None:
            self._file = SpoolFile(self._folder, self._memory_bytes)
        offset = self._file.append(array)
        return OnDisk(self._file, offset, array.dtype, len(array))


class OnDisk:
    """A one-dimensional array in an unnamed file."""

    __slots__ = ("_dtype", "_file", "_length", "_offset")

    def __init__(self, file: "SpoolFile", offset: int, dtype: np.dtype[Any], length: int) -> None:
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


class SpoolFile:
    """Bytes on disk that vanish with the last reference."""

    def __init__(self, folder: Path, budget_bytes: int) -> None:
        self._folder, self._budget_bytes = folder, budget_bytes
        self._file = unnamed_on_disk(folder, budget_bytes)
        self.num_bytes = 0

    def append(self, array: NDArray[Any]) -> int:
        """Append an array and return its position. One that does not fit changes nothing."""
        start = self.num_bytes
        try:
            self.num_bytes = self._file.write_at(np.ascontiguousarray(array).view(np.uint8), start)
        except OSError as error:
            raise storage_full(error, self._folder, self._budget_bytes) from error
        return start

    def read_into(self, array: NDArray[Any], offset: int) -> None:
        self._file.read_into(array.view(np.uint8), offset)


def unnamed_on_disk(folder: Path, budget_bytes: int) -> UnnamedFile:
    """Make an empty file without a name."""
    try:
        return UnnamedFile(unnamed_file(folder))
    except OSError as error:
        raise storage_full(error, folder, budget_bytes) from error


def storage_full(error: OSError, folder: Path, budget_bytes: int) -> StorageFullError:
    problem = error.strerror or str(error)
    return StorageFullError(str(folder), problem, format_bytes(budget_bytes))
