"""What a pattern of communication needs: this worker's rank, and messages to the others."""

from collections.abc import Generator, Iterable
from typing import Any, Final, Protocol

CHUNK_BYTES: Final = 1 << 20
"""Longer arrays are cut: a part is added or passed on while the next one arrives, in cache."""

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


def chunks(array: Array) -> list[Array]:
    """Cut an array into parts of about `CHUNK_BYTES`; an empty array has none."""
    if not len(array):
        return []
    per_chunk = max(1, CHUNK_BYTES * len(array) // num_bytes(array))
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
