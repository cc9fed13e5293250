"""Arrays that a thread keeps between supersteps, so that a small frontier costs little.

Whoever borrows one gives it back as it was; after an error it is thrown away.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_MAX_KEPT = 4  # sizes and types in one thread
_kept = threading.local()


class Scratch(NamedTuple):
    """`combined` is full of nothing and `seen` of zeros, except at `touched` while in use."""

    combined: NDArray[Any]
    seen: NDArray[np.uint8]
    touched: NDArray[np.uint32]

    def clear(self, num_touched: int) -> None:
        places = self.touched[:num_touched]
        self.combined[places] = self.combined.dtype.type(self._nothing)
        self.seen[places] = 0

    @property
    def _nothing(self) -> Any:
        return self.combined[-1]  # one place more than there are rows: never touched


@contextmanager
def scratch(num_rows: int, kind: np.dtype[Any], nothing: Any) -> Iterator[Scratch]:
    """Borrow arrays for so many rows; the caller clears what it touched."""
    kept: dict[Any, Scratch] = _kept.__dict__.setdefault("arrays", {})
    key = (num_rows, kind.str, nothing)
    borrowed = kept.pop(key, None) or Scratch(
        np.full(num_rows + 1, nothing, kind),
        np.zeros(num_rows + 1, np.uint8),
        np.empty(num_rows + 1, np.uint32),
    )
    yield borrowed
    kept[key] = borrowed
    while len(kept) > _MAX_KEPT:
        del kept[next(iter(kept))]
