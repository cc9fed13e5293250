"""Checkpoints of supersteps: when one is due, and how it is stored.

A file holds all outputs of the tasks of one superstep: reports, values, mails. It is written
atomically, and its checksums are verified before anything in it is decoded.
"""

import math
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgpack
import numpy as np

from talka.engine import storage
from talka.errors import InvalidValueError, PayloadError, SavedStateError, output_error
from talka.files import whole_file
from talka.graph.events import SuperstepDone
from talka.graph.supersteps.restoring import MAX_SUPERSTEP

_MAGIC: Final = b"talka-supersteps-1\n"
_MAX_HEADER_BYTES: Final = 1 << 28
_KEYS: Final = {"identity", "superstep", "outputs", "graph"}
_HOUR_S: Final = 3600.0
_FIRST_COST_S: Final = 0.5
_MAX_KEPT_BYTES: Final = 1 << 30


class SavedSuperstep(NamedTuple):
    """The content of a checkpoint."""

    superstep: int
    outputs: Sequence[Sequence[Sequence[Any]]]
    """Outputs by partition, then by task."""
    graph: Sequence[Any] = ()
    """The graph as `Stepper.changed_graph` returned it; empty if the program has not changed it."""
    path: str = ""
    """File that the checkpoint was read from."""


class Checkpoints:
    """Decides when a checkpoint is due, and writes and reads the files.

    Parameters
    ----------
    folder
        Folder for checkpoint files. Without one, a checkpoint lives in the memory of the driver,
        which covers the loss of a worker, but not of the driver.
    identity
        Hash of graph, program and partitioning. Only a run with the same hash can resume from a
        file.
    every
        Number of supersteps between checkpoints. If not given, a checkpoint is due when the time
        since the last one exceeds sqrt(2 x cost of one x time between failures): Young's rule,
        with an hour between failures.
    now
        Clock, in seconds.
    """

    def __init__(
        self,
        folder: Path | None,
        identity: str,
        *,
        every: int | None = None,
        resume: bool = False,
        is_needed: bool = True,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        if every is not None and every < 1:
            raise InvalidValueError("checkpoint_every", every, "a whole number of at least 1")
        self._folder, self._identity, self._every = folder, identity, every
        self._resume, self._is_needed, self._now = resume, is_needed, now
        self._cost_s = _FIRST_COST_S
        self._saved_s = self._now()
        self._num_passed = 0
        self._kept_bytes = 0

    def passed(self, done: SuperstepDone) -> None:
        """Count a superstep that has ended."""
        self._num_passed += 1
        self._kept_bytes += done.sent_bytes

    def is_due(self) -> bool:
        """Return whether to save now; also if the kept mails exceed 1 GiB."""
        if not self._is_needed:
            return False
        if self._every is not None:
            return self._num_passed >= self._every
        waited_s = self._now() - self._saved_s
        is_late = waited_s >= math.sqrt(2 * self._cost_s * _HOUR_S)
        return is_late or self._kept_bytes >= _MAX_KEPT_BYTES

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Measure the cost of a checkpoint: wraps everything that saving one takes."""
        start_s = self._now()
        yield
        self._saved_s = self._now()
        self._cost_s = self._saved_s - start_s
        self._num_passed = self._kept_bytes = 0

    def save(self, saved: SavedSuperstep) -> None:
        """Write a checkpoint to the folder, if there is one, and delete older ones."""
        if self._folder is None:
            return
        path = self._folder / f"superstep-{saved.superstep:09}.checkpoint"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            older = list(self._folder.glob("superstep-*.checkpoint"))
            with whole_file(path) as beside:
                _write(beside, self._identity, saved)
        except OSError as error:
            advice = "Then resume from the previous checkpoint, if there is one, or start again."
            raise output_error(path, error, advice) from error
        for file in older:
            if file != path:
                file.unlink(missing_ok=True)

    def last(self) -> SavedSuperstep | None:
        """Return the last checkpoint if the run should resume and there is one."""
        if not self._resume or self._folder is None:
            return None
        paths = sorted(self._folder.glob("superstep-*.checkpoint"))
        return _read(paths[-1], self._identity) if paths else None


def _write(path: Path, identity: str, saved: SavedSuperstep) -> None:
    blobs: list[Any] = []
    tree = [
        [[_entry(value, blobs) for value in task] for task in partition]
        for partition in saved.outputs
    ]
    graph = [_entry(value, blobs) for value in saved.graph]
    header = msgpack.packb(
        {"identity": identity, "superstep": saved.superstep, "outputs": tree, "graph": graph}
    )
    with path.open("wb") as file:
        file.write(_MAGIC)
        file.write(len(header).to_bytes(8, "little"))
        file.write(zlib.crc32(header).to_bytes(8, "little"))
        file.write(header)
        for blob in blobs:
            file.write(blob)


def _entry(value: Any, blobs: list[Any]) -> tuple[bool, int, int]:
    """Append an encoded value to `blobs`; return whether it is plain, its size and checksum."""
    stored = storage.to_storable(value)
    is_plain = isinstance(stored, storage.PackedValue)
    blob = stored.data if is_plain else storage.to_buffer(stored)
    blobs.append(blob)
    return is_plain, len(blob), zlib.crc32(blob)


def _read(path: Path, identity: str) -> SavedSuperstep:
    data = memoryview(np.fromfile(path, np.uint8).data)
    start = len(_MAGIC) + 16
    size = int.from_bytes(data[start - 16 : start - 8], "little")
    if bytes(data[: len(_MAGIC)]) != _MAGIC or not size < min(len(data), _MAX_HEADER_BYTES):
        raise SavedStateError(str(path), "is not a checkpoint of supersteps")
    if zlib.crc32(data[start : start + size]) != int.from_bytes(data[start - 8 : start], "little"):
        raise SavedStateError(str(path), "is damaged: its checksum does not match")
    try:
        return _decoded(path, identity, data, start, size)
    except PayloadError as error:
        raise SavedStateError(str(path), error.problem) from error


def _decoded(path: Path, identity: str, data: memoryview, start: int, size: int) -> SavedSuperstep:
    header = storage.from_foreign(data[start : start + size], is_packed=True)
    if not isinstance(header, dict) or header.keys() != _KEYS:
        raise PayloadError("has a header without its fields")
    if header["identity"] != identity:
        problem = "belongs to another graph, program or partitioning, or the program was edited"
        raise SavedStateError(str(path), problem)
    superstep = header["superstep"]
    if type(superstep) is not int or not 0 <= superstep < MAX_SUPERSTEP:
        raise PayloadError(f"was written in superstep {superstep!r}")
    blobs = _Blobs(data, start + size)
    try:
        partitions = header["outputs"]
        outputs = [
            [[blobs.next(*entry) for entry in task] for task in partition]
            for partition in partitions
        ]
        graph = [blobs.next(*entry) for entry in header["graph"]]
    except TypeError as error:
        raise PayloadError("has a header that is not a list of values") from error
    return SavedSuperstep(superstep, outputs, graph, str(path))


class _Blobs:
    """Iterates over stored values, and verifies the checksum of each before decoding it."""

    def __init__(self, data: memoryview, place: int) -> None:
        self._data, self._place = data, place

    def next(self, is_plain: bool, num_bytes: int, checksum: int) -> Any:  # noqa: FBT001
        blob = self._data[self._place : self._place + num_bytes]
        self._place += num_bytes
        if len(blob) != num_bytes or zlib.crc32(blob) != checksum:
            raise PayloadError("is damaged: its checksum does not match")
        return storage.from_foreign(blob, is_packed=is_plain)
