"""From entries in each row to where each row begins."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def row_offsets(counts: NDArray[Any]) -> NDArray[Any]:
    """Running sums from 0 on; uint32 wherever the total fits.

    >>> row_offsets(np.array([2, 0, 3]))
    array([0, 2, 2, 5], dtype=uint32)
    """
    offsets = np.zeros(len(counts) + 1, np.uint64)
    np.cumsum(counts, out=offsets[1:])
    return offsets.astype(np.uint32) if offsets[-1] < 2**32 else offsets
