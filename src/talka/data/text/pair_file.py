"""Storage of pairs: an unnamed file, in memory up to a limit and then on disk."""

import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from talka.data.text.spool import storage_full, unnamed_on_disk
from talka.files import UnnamedFile


class PairFile:
    """A file that grows at the end, and whose parts are memory-mapped for writing."""

    def __init__(self, folder: Path, *, memory_bytes: int) -> None:
        self._folder, self._memory_bytes = folder, memory_bytes
        self._file = UnnamedFile(os.memfd_create("talka-pairs"))
        self._in_memory = True
        self.num_bytes = 0

    def extend(self, num_bytes: int) -> None:
        """Extend the file. No part may be mapped, because the file may be moved to disk."""
        if not num_bytes:
            return
        try:
            if self._in_memory and self.num_bytes + num_bytes > self._memory_bytes:
                self._move_to_disk()
            # Reserve the space: writing to a mapped page on a full disk would kill the process.
            os.posix_fallocate(self._file.descriptor, self.num_bytes, num_bytes)
        except OSError as error:
            raise storage_full(error, self._folder, self._memory_bytes) from error
        self.num_bytes += num_bytes

    def mapped(self, start: int, stop: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Map bytes start to stop as a writable array, which may outlive the file object."""
        if start == stop:
            return np.empty(0, dtype)
        before = start % mmap.ALLOCATIONGRANULARITY
        area = mmap.mmap(self._file.descriptor, stop - start + before, offset=start - before)
        return np.frombuffer(area, np.uint8, offset=before).view(dtype)

    def _move_to_disk(self) -> None:
        target = unnamed_on_disk(self._folder, self._memory_bytes)
        self._file.copy_to(target, self.num_bytes)
        self._file, self._in_memory = target, False
