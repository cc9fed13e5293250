"""One partition of a graph, and its encoding as one array of bytes.

Each vertex is owned by one partition. Other partitions with edges of the vertex have a mirror of
it. Both sides know the order of mirrors, so only values are sent: the owner sends the values at its
`send_places`, which become the values of the receiver's source mirrors; messages combined for
target mirrors are sent the other way, to the owner's `receive_places`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from talka.errors import PayloadError
from talka.graph.csr import Csr
from talka.graph.kernels.ordering import places_in

Numbers = NDArray[np.uint32]
Offsets = NDArray[np.int64]

_ALIGNMENT_BYTES = 64  # a cache line; Arrow and shared memory keep it too
_MAGIC = int.from_bytes(b"talkpart", "little")
_KINDS: tuple[type[Any], ...] = (np.uint32, np.uint64, np.int64, np.float64)
_ABSENT = -1


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Partition:
    """One partition of a graph: its own vertices, mirrors, edges and routes.

    Rows and columns are numbered by slots: own vertices first, then mirrors. A row of `out` is a
    source slot, its columns are target slots; `into` has the same edges by target.
    """

    index: int
    num_partitions: int
    own: Numbers
    """Numbers of the vertices that this partition owns, ascending."""
    source_mirrors: Numbers
    """Numbers of vertices of other partitions that are sources here, by owner, then ascending."""
    source_mirror_offsets: Offsets
    """Start of the mirrors of each owner in `source_mirrors`, and the end of the last."""
    target_mirrors: Numbers
    target_mirror_offsets: Offsets
    out: Csr
    into: Csr
    out_degrees: Numbers
    """Out-degrees of own vertices in the whole graph."""
    in_degrees: Numbers
    send_places: Numbers
    """Places in `own` that partition q keeps as source mirrors, in q's order, for all q."""
    send_place_offsets: Offsets
    receive_places: Numbers
    """Places in `own` that partition q keeps as target mirrors, in q's order, for all q."""
    receive_place_offsets: Offsets

    @property
    def num_own(self) -> int:
        return len(self.own)

    @property
    def source_numbers(self) -> Numbers:
        """Vertex number of each source slot."""
        return np.concatenate([self.own, self.source_mirrors])

    @property
    def target_numbers(self) -> Numbers:
        """Vertex number of each target slot."""
        return np.concatenate([self.own, self.target_mirrors])

    def places_of(self, numbers: Numbers) -> NDArray[np.int64]:
        """Return the places of own vertices, given their numbers."""
        return places_in(self.own, numbers)

    def route_from(self, index: int) -> NDArray[Any]:
        """Return the places in `own` that mail from partition `index` is for, in its order."""
        if index == self.index:
            return np.arange(self.num_own)
        offsets = self.receive_place_offsets
        return self.receive_places[offsets[index] : offsets[index + 1]]

    def to_blob(self) -> NDArray[np.uint8]:
        """Encode the partition: a header of 8-byte words, then each array aligned to 64 bytes.

        Words: magic number, index, number of partitions; kind, first byte and length of each array.
        """
        words = [_MAGIC, self.index, self.num_partitions]
        places: dict[int, int] = {}  # by object id: `out` and `into` may be one object, stored once
        end_bytes = _aligned(8 * _NUM_WORDS)
        for array in self._arrays():
            if array is None:
                words += [_ABSENT, 0, 0]
                continue
            if id(array) not in places:
                places[id(array)] = end_bytes
                end_bytes = _aligned(end_bytes + array.nbytes)
            words += [_KINDS.index(array.dtype.type), places[id(array)], len(array)]
        blob = _zeros_aligned(end_bytes)
        blob[: 8 * _NUM_WORDS] = np.array(words, np.int64).view(np.uint8)
        for array in self._arrays():
            if array is not None:
                start = places[id(array)]
                blob[start : start + array.nbytes] = array.view(np.uint8)
        return blob

    @staticmethod
    def from_blob(blob: NDArray[np.uint8]) -> "Partition":
        """Decode a partition; its arrays are views of the blob."""
        if len(blob) < 8 * _NUM_WORDS:
            raise PayloadError(f"has {len(blob)} bytes, fewer than the header of a partition")
        words = blob[: 8 * _NUM_WORDS].view(np.int64).tolist()
        if words[0] != _MAGIC:
            raise PayloadError("does not begin as a partition does")
        entries = [tuple(words[at : at + 3]) for at in range(3, _NUM_WORDS, 3)]
        arrays = [_view(blob, *entry) for entry in entries]
        out, into = Csr(*arrays[:3]), Csr(*arrays[3:6])
        if entries[:3] == entries[3:6]:
            into = out
        named = dict(zip(_PLAIN_ARRAYS, arrays[6:], strict=True))
        return Partition(index=words[1], num_partitions=words[2], out=out, into=into, **named)

    def _arrays(self) -> Iterator[NDArray[Any] | None]:
        yield from self.out
        yield from self.into
        for name in _PLAIN_ARRAYS:
            yield getattr(self, name)


_PLAIN_ARRAYS = (
    "own",
    "source_mirrors",
    "source_mirror_offsets",
    "target_mirrors",
    "target_mirror_offsets",
    "out_degrees",
    "in_degrees",
    "send_places",
    "send_place_offsets",
    "receive_places",
    "receive_place_offsets",
)
_NUM_WORDS = 3 + 3 * (6 + len(_PLAIN_ARRAYS))


def _aligned(num_bytes: int) -> int:
    return -(-num_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES


def _zeros_aligned(num_bytes: int) -> NDArray[np.uint8]:
    padded = np.zeros(num_bytes + _ALIGNMENT_BYTES, np.uint8)
    skipped = -padded.ctypes.data % _ALIGNMENT_BYTES
    return padded[skipped : skipped + num_bytes]


def _view(blob: NDArray[np.uint8], kind: int, start: int, length: int) -> Any:
    """Return one array of a blob; typed `Any`, as fields have several types."""
    if kind == _ABSENT:
        return None
    if not 0 <= kind < len(_KINDS):
        raise PayloadError(f"holds an array of unknown kind {kind}")
    stop = start + length * np.dtype(_KINDS[kind]).itemsize
    if not 0 <= start <= stop <= len(blob):
        raise PayloadError(f"has {len(blob)} bytes, but an array in bytes {start} to {stop}")
    return blob[start:stop].view(_KINDS[kind])
