"""What a pattern of communication needs: this worker's rank, and messages to the others."""

import math
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from typing import Any, Final, Protocol

CHUNK_BYTES: Final = 1 << 20
"""Longer arrays are cut: a part is added or passed on while the next one arrives, in cache."""

_NUM_AHEAD: Final = 2

Array = Any
"""A one-dimensional numpy array or tensor: both can be sliced, assigned to, and added in place."""


class Awaited(Protocol):
    """An operation in progress."""

    def wait(self) -> object: ...


Steps = Generator[Iterable[Awaited], None, None]
"""A generator that yields the operations it waits for before it continues."""


class Port(Protocol):
    """One worker during one call of a collective or an exchange."""

    rank: int
    num_workers: int

    def send(self, array: Array, to: int, *, phase: int = 0) -> Awaited:
        """Start to send an array; messages of one phase between two workers stay in order."""
        ...

    def receive(self, into: Array, source: int, *, phase: int = 0) -> Awaited:
        """Start to receive into an array of the same length as the one sent."""
        ...

    def scratch(self, like: Array) -> Array:
        """Return memory of the same type and length; it belongs to this call until it ends."""
        ...

    def combine(self, into: Array, part: Array) -> None:
        """Combine two arrays in place: add them, unless a caller asked for something else."""
        ...


def run(steps: Steps) -> None:
    """Run a pattern to its end."""
    for awaited in steps:
        for operation in awaited:
            operation.wait()


def others(port: Port) -> list[int]:
    """Return the ranks of the others, the next one first: so not all send to the same at once."""
    return [(port.rank + step) % port.num_workers for step in range(1, port.num_workers)]


def chunks(array: Array, chunk_bytes: float = CHUNK_BYTES) -> list[Array]:
    """Cut an array into parts of at most about `chunk_bytes`; an empty array has none."""
    if not len(array):
        return []
    per_chunk = max(1, math.ceil(chunk_bytes * len(array) / num_bytes(array)))
    return [array[start : start + per_chunk] for start in range(0, len(array), per_chunk)]


def num_bytes(array: Array) -> int:
    """Return the bytes of an array or tensor."""
    return int(array.nbytes)


def slices(array: Array, count: int) -> list[Array]:
    """Cut an array into `count` slices whose lengths differ by at most one.

    >>> import numpy as np
    >>> [len(part) for part in slices(np.arange(7), 3)]
    [3, 2, 2]
    """
    share, rest = divmod(len(array), count)
    stops = [share * (index + 1) + min(index + 1, rest) for index in range(count)]
    return [array[start:stop] for start, stop in zip([0, *stops[:-1]], stops, strict=True)]


class Ahead:
    """Receives parts from one or more workers into scratch memory, some ahead of the one in use.

    Memory of a part is used again for a later one, so it stays in cache.
    """

    def __init__(
        self, port: Port, parts: Sequence[Array], sources: Sequence[int], *, phase: int = 0
    ) -> None:
        self._port, self._parts, self._sources, self._phase = port, parts, sources, phase
        self._posted: deque[tuple[dict[int, Array], list[Awaited]]] = deque()
        self._free: list[dict[int, Array]] = []
        self._num_posted = 0
        for _ in range(_NUM_AHEAD):
            self._post()

    def next(self) -> tuple[dict[int, Array], list[Awaited]]:
        """Return scratch memory by worker for the next part, and what to wait for."""
        scratch, operations = self._posted.popleft()
        length = len(self._parts[self._num_posted - len(self._posted) - 1])
        return {source: whole[:length] for source, whole in scratch.items()}, operations

    def used(self, scratch: dict[int, Array]) -> None:
        """Use the memory of a part again, and receive a later part."""
        self._free.append(scratch)
        self._post()

    def _post(self) -> None:
        if self._num_posted == len(self._parts):
            return
        part = self._parts[self._num_posted]
        self._num_posted += 1
        whole = self._free.pop() if self._free else {}
        if not whole or len(whole[self._sources[0]]) < len(part):
            whole = {source: self._port.scratch(part) for source in self._sources}
        operations = [
            self._port.receive(whole[source][: len(part)], source, phase=self._phase)
            for source in self._sources
        ]
        self._posted.append((whole, operations))
