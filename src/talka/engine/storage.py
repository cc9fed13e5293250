"""Files of stored values in segments (`segments.py`), which have no name.

Other processes of the job map them without a copy. `talka.values` defines the form of a value.
"""

from typing import Any

import pyarrow as pa

from talka.engine.segments import StorageSegment
from talka.values import (
    PackedValue,
    describe,
    from_buffer,
    from_foreign,
    pack,
    pack_whole,
    read,
    size_in_memory,
    to_buffer,
    to_storable,
    unpack,
    write,
)

__all__ = [
    "File",
    "PackedValue",
    "describe",
    "from_buffer",
    "from_foreign",
    "in_memory",
    "into_file",
    "pack",
    "pack_whole",
    "read",
    "read_file",
    "size_in_memory",
    "to_buffer",
    "to_storable",
    "unpack",
    "write",
]


class File:
    """A value in storage form at a position in a segment."""

    __slots__ = ("is_packed", "num_bytes", "segment", "start")

    def __init__(
        self, segment: StorageSegment, start: int, num_bytes: int, *, is_packed: bool
    ) -> None:
        self.segment, self.start = segment, start
        self.num_bytes, self.is_packed = num_bytes, is_packed

    @property
    def on_disk(self) -> bool:
        return self.segment.on_disk

    def buffer(self) -> pa.Buffer:
        """Return the bytes of the file, mapped but not read; valid without the descriptor."""
        return self.segment.buffer(self.start, self.num_bytes)


def read_file(file: File) -> Any:
    """Return the value in a file; Arrow and numpy are mapped without a copy."""
    buffer = file.buffer()
    return unpack(PackedValue(buffer.to_pybytes())) if file.is_packed else read(buffer)


def in_memory(file: File) -> Any:
    """Copy a file into private memory, as a storable value that needs no descriptor."""
    data = file.buffer().to_pybytes()
    return PackedValue(data) if file.is_packed else read(pa.py_buffer(data))


def into_file(content: Any, segment: StorageSegment) -> File:
    """Append a storable value or a file to a segment; OSError if the disk is full."""
    with segment.appending() as sink:
        if isinstance(content, PackedValue):
            sink.write(content.data)
        elif isinstance(content, File):
            sink.write(content.buffer())
        else:
            with pa.PythonFile(sink, "w") as stream:
                write(content, stream)
    is_packed = content.is_packed if isinstance(content, File) else isinstance(content, PackedValue)
    return File(segment, sink.start, sink.tell(), is_packed=is_packed)
