"""Values in messages between processes: small ones in the frame, large ones in segments.

The frame has a label for each value: its bytes, or its position in a segment. The descriptors of the
segments are sent after the frame.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from talka.engine import segments, storage
from talka.engine.segments import Shelf, StorageSegment
from talka.engine.storage import File, PackedValue

# Smaller values are sent inside the frame: a descriptor costs about as much as copying them.
INLINE_BYTES = 64 * 1024
MAX_INLINE_BYTES = 16 * 1024 * 1024
"""Bytes that all values in one frame may have together, as frames have a maximum size."""


class Parcels(NamedTuple):
    """Labels for the frame, and the segments whose descriptors are sent after it."""

    labels: list[Any]
    segments: list[StorageSegment]

    @property
    def descriptors(self) -> list[int]:
        return [segment.descriptor for segment in self.segments]


def is_inline(content: Any) -> bool:
    """Return whether a value is small enough to be sent inside the frame."""
    return isinstance(content, PackedValue) and len(content.data) <= INLINE_BYTES


def compact(content: Any) -> Any:
    """Turn a small Arrow or numpy value into `PackedValue`, which needs no descriptor."""
    if isinstance(content, PackedValue | File) or content.nbytes > INLINE_BYTES:
        return content
    packed = storage.pack_whole(content)
    return packed if is_inline(packed) else content


def wrap(values: Sequence[Any]) -> Parcels:
    """Prepare storable values or files for a message."""
    if not values:
        return Parcels([], [])
    if len(values) == 1 and is_inline(values[0]):  # the usual case
        return Parcels([values[0].data], [])
    contents = [compact(value) for value in values]
    left = MAX_INLINE_BYTES
    for position, content in enumerate(contents):
        if is_inline(content):
            left -= len(content.data)
            contents[position] = content.data if left >= 0 else content
    if all(type(content) is bytes for content in contents):
        return Parcels(contents, [])
    into_files(contents)
    parcels, index_of = Parcels([], []), dict[StorageSegment, int]()
    for content in contents:
        if isinstance(content, bytes):
            parcels.labels.append(content)
            continue
        segment = content.segment
        if segment not in index_of:
            index_of[segment] = len(parcels.segments)
            parcels.segments.append(segment)
        where = (index_of[segment], content.start, content.num_bytes)
        parcels.labels.append((*where, content.is_packed, segment.on_disk))
    return parcels


def into_files(contents: list[Any]) -> None:
    """Replace storable values by files in shared memory, in few segments."""
    loose = [i for i, content in enumerate(contents) if not isinstance(content, File | bytes)]
    min_bytes = sum(storage.size_in_memory(contents[i]) for i in loose) / segments.max_in_message()
    shelf = Shelf()
    for i in loose:
        contents[i] = storage.into_file(contents[i], shelf.segment(min_bytes))


def unwrap(labels: Sequence[Any], descriptors: Sequence[int]) -> list[PackedValue | File]:
    """Return the values that were given to `wrap`, in the receiving process."""
    if not descriptors:
        return [PackedValue(label) for label in labels]
    ends = [0] * len(descriptors)
    on_disk = [False] * len(descriptors)
    for label in labels:
        if not isinstance(label, bytes):
            index, start, num_bytes, _, is_on_disk = label
            ends[index] = max(ends[index], start + num_bytes)
            on_disk[index] = is_on_disk
    received = [
        StorageSegment(descriptor, num_bytes=ends[index], on_disk=on_disk[index])
        for index, descriptor in enumerate(descriptors)
    ]
    contents: list[PackedValue | File] = []
    for label in labels:
        if isinstance(label, bytes):
            contents.append(PackedValue(label))
        else:
            index, start, num_bytes, is_packed, _ = label
            contents.append(File(received[index], start, num_bytes, is_packed=is_packed))
    return contents


def value_of(content: PackedValue | File) -> Any:
    """Return the value itself; Arrow and numpy in a file are mapped, not copied."""
    return (
        storage.unpack(content) if isinstance(content, PackedValue) else storage.read_file(content)
    )
