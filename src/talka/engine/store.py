"""Where the embedded engine keeps outputs: in memory up to a budget, then on disk."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from talka.engine import parcels, storage
from talka.engine.lineage import OutputId
from talka.engine.storage import File, Packed
from talka.errors import StorageFullError
from talka.units import format_bytes

_ENTRY_BYTES = 200  # what the bookkeeping of an output takes, so that many tiny ones count too


class _Entry:
    """One output: a live Arrow or numpy value of this process, packed bytes, or a file."""

    __slots__ = ("content", "lock", "num_bytes")

    def __init__(self, content: Any, num_bytes: int) -> None:
        self.content = content
        self.num_bytes = num_bytes  # counted against the budget; 0 on disk
        self.lock = threading.Lock()  # held while the content changes its form


class Store:
    """Outputs by id. Least recently used ones go to disk when memory is over its budget.

    A value that only threads of this process use is never written at all; it becomes a file in
    shared memory when a worker process first needs it, or a file on disk when memory is short.
    """

    def __init__(
        self, memory_bytes: int, spill_dir: Path, on_spill: Callable[[int, float], None]
    ) -> None:
        self.memory_bytes = memory_bytes
        self._spill_dir = spill_dir
        self._on_spill = on_spill
        self._entries: OrderedDict[OutputId, _Entry] = OrderedDict()
        self._lock = threading.Lock()
        self._used_bytes = 0

    @property
    def used_bytes(self) -> int:
        """Memory that outputs take now."""
        return self._used_bytes

    def put(self, output: OutputId, content: Any) -> int:
        """Keep a settled value or a file; gives its size. May move older outputs to disk first."""
        if isinstance(content, Packed):
            num_bytes = len(content.data)
        elif isinstance(content, File):
            num_bytes = content.num_bytes
        else:
            num_bytes = storage.size_in_memory(content)
        entry = _Entry(content, num_bytes + _ENTRY_BYTES)
        with self._lock:
            before = self._entries.get(output)
            if before is not None:  # computed again for another output of the same task
                return num_bytes
            self._entries[output] = entry
            self._used_bytes += entry.num_bytes
        if self._used_bytes > self.memory_bytes:
            self._make_room(output)
        return num_bytes

    def get(self, output: OutputId) -> Any:
        """The value, without a copy. KeyError when it is not here."""
        content = self._touch(output).content
        return parcels.value_of(content) if isinstance(content, Packed | File) else content

    def share(self, output: OutputId) -> Packed | File:
        """The value in a form that another process can read. KeyError when it is not here."""
        entry = self._touch(output)
        content = entry.content
        if isinstance(content, File) or parcels.is_inline(content):
            return content  # type: ignore[no-any-return]
        with entry.lock:
            if not isinstance(entry.content, File):
                self._replace(entry, storage.in_shared_memory(entry.content))
            return entry.content  # type: ignore[no-any-return]

    def discard(self, output: OutputId) -> None:
        with self._lock:
            entry = self._entries.pop(output, None)
            if entry is not None:
                self._used_bytes -= entry.num_bytes
                entry.num_bytes = 0

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._used_bytes = 0

    def _touch(self, output: OutputId) -> _Entry:
        with self._lock:
            entry = self._entries[output]
            self._entries.move_to_end(output)
            return entry

    def _replace(self, entry: _Entry, file: File) -> None:
        with self._lock:
            entry.content = file
            if entry.num_bytes:  # else it was discarded meanwhile
                self._used_bytes -= entry.num_bytes
                entry.num_bytes = _ENTRY_BYTES + (0 if file.on_disk else file.num_bytes)
                self._used_bytes += entry.num_bytes

    def _make_room(self, newest: OutputId) -> None:
        """Move the least recently used outputs to disk, the newest last."""
        with self._lock:
            entries = [e for e in self._entries.values() if e.num_bytes > 2 * _ENTRY_BYTES]
        problem = ""
        for entry in entries:
            if self._used_bytes <= self.memory_bytes:
                return
            try:
                self._spill(entry)
            except OSError as error:
                problem = error.strerror or str(error)
                break
        if problem:  # raised out here: the frames of the first error would keep outputs alive
            self.discard(newest)
            budget = format_bytes(self.memory_bytes)
            raise StorageFullError(str(self._spill_dir), problem, budget)

    def _spill(self, entry: _Entry) -> None:
        start = time.perf_counter()
        with entry.lock:
            content = entry.content
            if entry.num_bytes == 0 or (isinstance(content, File) and content.on_disk):
                return
            if isinstance(content, File):
                file = storage.moved_to_disk(content, self._spill_dir)
            else:
                file = storage.on_disk(content, self._spill_dir)
            self._replace(entry, file)
        self._on_spill(file.num_bytes, time.perf_counter() - start)
