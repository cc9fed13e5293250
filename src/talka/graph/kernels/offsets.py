"""Offsets of rows from the number of entries in each row."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def row_offsets(counts: NDArray[Any]) -> NDArray[Any]:
    """Return running sums from 0 on, as uint32 if the total fits, otherwise as uint64.

    >>> row_offsets(np.array([2, 0, 3]))
    array([0, 2, 2, 5], dtype=uint32)
    """
    offsets = np.zeros(len(counts) + 1, np.uint64)
    np.cumsum(counts, out=offsets[1:])
    return offsets.astype(np.uint32) if offsets[-1] < 2**32 else offsets
