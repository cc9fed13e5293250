"""The store of the embedded engine: outputs in memory up to a budget, then on disk."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from talka.engine import parcels, segments, storage
from talka.engine.lineage import OutputId
from talka.engine.segments import Shelf
from talka.engine.storage import File, PackedValue
from talka.errors import DescriptorLimitError, StorageFullError
from talka.units import format_bytes

_SPILL_SEGMENTS = 16  # a segment on disk is full with 1/16 of all bytes on disk
_ENTRY_BYTES = 200  # bookkeeping of an output, so that many tiny ones count too


class _Entry:
    """One output: an Arrow or numpy value in this process, packed bytes, or a file."""

    __slots__ = ("content", "lock", "num_bytes")

    def __init__(self, content: Any, num_bytes: int) -> None:
        self.content = content
        self.num_bytes = num_bytes  # counted against the budget; 0 on disk
        self.lock = threading.Lock()  # held while the form of the content changes


class Store:
    """Outputs by id; the least recently used are moved to disk if memory exceeds its budget.

    A value that only threads of this process use is never written. It becomes a file in shared
    memory when a worker process first needs it, or a file on disk when memory is short. If files in
    shared memory need too many descriptors, the oldest become values again.
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
        self._shared: dict[OutputId, _Entry] = {}  # files in shared memory, oldest first
        self._spilled = Shelf(spill_dir)
        self._spilled_bytes = 0
        self._spill_lock = threading.Lock()

    @property
    def used_bytes(self) -> int:
        """Bytes of memory that outputs take at the moment."""
        return self._used_bytes

    def put(self, output: OutputId, content: Any) -> int:
        """Store a storable value or a file and return its size in bytes.

        May move older outputs to disk; raises StorageFullError if that fails.
        """
        num_bytes = _size(content)
        entry = _Entry(content, num_bytes + _ENTRY_BYTES)
        with self._lock:
            before = self._entries.get(output)
            if before is not None:  # computed again for another output of the same task
                return num_bytes
            self._entries[output] = entry
            self._used_bytes += entry.num_bytes
            if isinstance(content, File):
                self._shared[output] = entry
        if self._used_bytes > self.memory_bytes:
            self._make_room(output)
        if isinstance(content, File):
            self._bound_descriptors()
        return num_bytes

    def get(self, output: OutputId) -> Any:
        """Return a value without a copy; KeyError if it is not stored."""
        content = self._touch(output).content
        return parcels.value_of(content) if isinstance(content, PackedValue | File) else content

    def share(self, outputs: Sequence[OutputId]) -> list[PackedValue | File | None]:
        """Return values in a form that another process can read; None for those not stored."""
        if not outputs:
            return []
        entries = [self._find(output) for output in outputs]
        contents = [None if entry is None else entry.content for entry in entries]
        total = sum(_size(c) for c in contents if c is not None and not isinstance(c, File))
        shelf, min_bytes = Shelf(), total / segments.max_in_message()
        shared: list[PackedValue | File | None] = []
        for output, entry in zip(outputs, entries, strict=True):
            shared.append(None if entry is None else self._share(output, entry, shelf, min_bytes))
        self._bound_descriptors()
        return shared

    def _share(
        self, output: OutputId, entry: _Entry, shelf: Shelf, min_bytes: float
    ) -> PackedValue | File:
        content = entry.content
        if isinstance(content, File) or parcels.is_inline(content):
            return content  # type: ignore[no-any-return]
        with entry.lock:
            content = parcels.compact(entry.content)
            if not isinstance(content, File) and not parcels.is_inline(content):
                content = storage.into_file(content, shelf.segment(min_bytes))
            if content is not entry.content:
                self._replace(output, entry, content)
            return content  # type: ignore[no-any-return]

    def discard(self, output: OutputId) -> None:
        """Free an output, if it is stored."""
        with self._lock:
            entry = self._entries.pop(output, None)
            if entry is not None:
                self._used_bytes -= entry.num_bytes
                entry.num_bytes = 0
                if isinstance(entry.content, File):
                    self._shared.pop(output, None)
                    self._spilled_bytes -= _on_disk_bytes(entry.content)

    def clear(self) -> None:
        """Free all outputs."""
        with self._lock:
            self._entries.clear()
            self._shared.clear()
            self._used_bytes = self._spilled_bytes = 0
            self._spilled = Shelf(self._spill_dir)

    def _touch(self, output: OutputId) -> _Entry:
        with self._lock:
            entry = self._entries[output]
            self._entries.move_to_end(output)
            return entry

    def _find(self, output: OutputId) -> _Entry | None:
        try:
            return self._touch(output)
        except KeyError:
            return None

    def _replace(self, output: OutputId, entry: _Entry, content: Any) -> None:
        with self._lock:
            before, entry.content = entry.content, content
            if entry.num_bytes == 0:  # discarded in the meantime
                return
            on_disk_bytes = _on_disk_bytes(content)
            self._used_bytes -= entry.num_bytes
            entry.num_bytes = _ENTRY_BYTES + (0 if on_disk_bytes else _size(content))
            self._used_bytes += entry.num_bytes
            self._spilled_bytes += on_disk_bytes - _on_disk_bytes(before)
            if isinstance(content, File) and not on_disk_bytes:
                self._shared[output] = entry
            else:
                self._shared.pop(output, None)

    def _bound_descriptors(self) -> None:
        """Copy the oldest files in shared memory into private memory if too many are open."""
        if segments.num_open() <= segments.MIN_OPEN:
            return  # the usual case, without a system call for the limit
        max_open = segments.max_open()
        if segments.num_open() <= max_open:
            return
        with self._lock:
            oldest = list(self._shared.items())
        for output, entry in oldest:
            if segments.num_open() <= max_open // 2:
                return
            with entry.lock:
                if isinstance(entry.content, File) and not entry.content.on_disk:
                    self._replace(output, entry, storage.in_memory(entry.content))

    def _make_room(self, newest: OutputId) -> None:
        """Move the least recently used outputs to disk until memory is within its budget."""
        with self._lock:
            entries = [e for e in self._entries.items() if e[1].num_bytes > 2 * _ENTRY_BYTES]
        problem = ""
        for output, entry in entries:
            if self._used_bytes <= self.memory_bytes:
                return
            try:
                self._spill(output, entry)
            except OSError as error:
                problem = error.strerror or str(error)
                break
            except DescriptorLimitError:
                self.discard(newest)
                raise
        if problem:  # raised here, as the frames of the first error would keep outputs alive
            self.discard(newest)
            budget = format_bytes(self.memory_bytes)
            raise StorageFullError(str(self._spill_dir), problem, budget)

    def _spill(self, output: OutputId, entry: _Entry) -> None:
        start = time.perf_counter()
        with entry.lock:
            content = entry.content
            if entry.num_bytes == 0 or (isinstance(content, File) and content.on_disk):
                return
            with self._spill_lock:
                # Segments grow with the bytes on disk, so that there are always few of them.
                segment = self._spilled.segment(self._spilled_bytes / _SPILL_SEGMENTS)
            file = storage.into_file(content, segment)
            self._replace(output, entry, file)
        self._on_spill(file.num_bytes, time.perf_counter() - start)


def _size(content: Any) -> int:
    return content.num_bytes if isinstance(content, File) else storage.size_in_memory(content)


def _on_disk_bytes(content: Any) -> int:
    return content.num_bytes if isinstance(content, File) and content.on_disk else 0
