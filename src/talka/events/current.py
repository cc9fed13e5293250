"""The stream of this process as a rank: that of its gang, or a file in the run directory.

    gang         provides the stream of the rank while its `main` runs
    torchrun     RANK and TALKA_RUN_DIR name the file, which is opened at the first use
    otherwise    there is no stream

Code that runs in a rank without knowing what started it, such as `talka.train.log`, writes here.
"""

import atexit
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from talka.events.run import RUN_DIR_VARIABLE
from talka.events.stream import Stream
from talka.guard import Logged


class OwnStream(NamedTuple):
    """The stream of this process, and its rank."""

    stream: Stream | None
    """None if no run is recorded."""
    rank: int


_lock = threading.RLock()
_provided: OwnStream | None = None
_opened: dict[tuple[str, int], OwnStream] = {}
_at_end: list[Callable[[], None]] = []


@contextmanager
def providing_stream(stream: Stream, rank: int) -> Iterator[None]:
    """Make this the stream of the process inside the block, as gangs do for each rank."""
    global _provided
    with _lock:
        before, _provided = _provided, OwnStream(stream, rank)
    try:
        yield
    finally:
        with _lock:
            callbacks, _at_end[:] = tuple(_at_end), ()
        for callback in callbacks:
            with Logged("write the last events"):
                callback()
        with _lock:
            _provided = before


def own_stream() -> OwnStream:
    """Return the stream of this process."""
    with _lock:
        if _provided is not None:
            return _provided
        rank = os.environ.get("RANK", "")
        place = (os.environ.get(RUN_DIR_VARIABLE, ""), int(rank) if rank.isdecimal() else 0)
        if place not in _opened:
            _opened[place] = OwnStream(_open(*place), place[1])
        return _opened[place]


def before_end(callback: Callable[[], None]) -> None:
    """Call `callback` once: before the stream of the gang ends, or at the exit of the process."""
    with _lock:
        if _provided is None:
            atexit.register(callback)
        else:
            _at_end.append(callback)


def _open(folder: str, rank: int) -> Stream | None:
    if not folder:
        return None
    Path(folder).mkdir(parents=True, exist_ok=True)
    return Stream(Path(folder) / f"events.rank-{rank}.jsonl")
