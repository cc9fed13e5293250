"""Arrays that a thread keeps between supersteps, so that a small frontier costs little.

A borrowed array must be returned cleared; after an error it is discarded.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_MAX_KEPT = 4  # combinations of size and type per thread
_kept = threading.local()


class Scratch(NamedTuple):
    """Arrays with one entry per row, for messages that reach only few rows.

    `combined` holds `no_message` and `seen` zeros everywhere, except at `touched` while in use.
    """

    combined: NDArray[Any]
    seen: NDArray[np.uint8]
    touched: NDArray[np.uint32]

    def clear(self, num_touched: int) -> None:
        """Reset the entries at the first `num_touched` places of `touched`."""
        places = self.touched[:num_touched]
        self.combined[places] = self.combined.dtype.type(self._no_message)
        self.seen[places] = 0

    @property
    def _no_message(self) -> Any:
        return self.combined[-1]  # the entry after the last row, which is never touched


@contextmanager
def scratch(num_rows: int, kind: np.dtype[Any], no_message: Any) -> Iterator[Scratch]:
    """Borrow arrays for `num_rows` rows; the caller clears the entries it touched."""
    kept: dict[Any, Scratch] = _kept.__dict__.setdefault("arrays", {})
    key = (num_rows, kind.str, no_message)
    borrowed = kept.pop(key, None) or Scratch(
        np.full(num_rows + 1, no_message, kind),
        np.zeros(num_rows + 1, np.uint8),
        np.empty(num_rows + 1, np.uint32),
    )
    yield borrowed
    kept[key] = borrowed
    while len(kept) > _MAX_KEPT:
        del kept[next(iter(kept))]
