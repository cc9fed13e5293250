"""Stored values inside frames: small plain ones as they are, all else as a file's descriptor."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from talka.engine import storage
from talka.engine.storage import File, Packed

# Below this a value travels inside the frame: a descriptor costs about as much as copying it.
INLINE_BYTES = 64 * 1024


class Parcels(NamedTuple):
    """What stands in the frame, and the files whose descriptors go behind it."""

    labels: list[Any]
    files: list[File]

    @property
    def descriptors(self) -> list[int]:
        return [file.descriptor for file in self.files]


def is_inline(content: Any) -> bool:
    return isinstance(content, Packed) and len(content.data) <= INLINE_BYTES


def wrap(contents: Iterable[Any]) -> Parcels:
    """Make settled values or files ready to travel."""
    parcels = Parcels([], [])
    for content in contents:
        if is_inline(content):
            parcels.labels.append(content.data)
            continue
        file = content if isinstance(content, File) else storage.in_shared_memory(content)
        parcels.labels.append((file.num_bytes, file.is_packed, file.on_disk))
        parcels.files.append(file)
    return parcels


def unwrap(labels: Iterable[Any], descriptors: Sequence[int]) -> list[Packed | File]:
    """What `wrap` was given, on the other side."""
    rest = iter(descriptors)
    contents: list[Packed | File] = []
    for label in labels:
        if isinstance(label, bytes):
            contents.append(Packed(label))
        else:
            num_bytes, is_packed, on_disk = label
            contents.append(
                File(next(rest), num_bytes=num_bytes, is_packed=is_packed, on_disk=on_disk)
            )
    return contents


def value_of(content: Packed | File) -> Any:
    return storage.unpack(content) if isinstance(content, Packed) else storage.read_file(content)
