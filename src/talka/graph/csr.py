"""Edges grouped by one of their ends, in compressed sparse rows."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Csr(NamedTuple):
    """Compressed sparse rows: row r has `columns[offsets[r]:offsets[r + 1]]`, ascending.

    Integers are unsigned and have 32 bits where they fit: signed ones cost kernels 30 to 70% of
    their speed, because every index is checked for a sign and widened.
    """

    offsets: NDArray[Any]
    """Start of each row, and the end of the last; uint32, or uint64 from 2**32 entries on."""
    columns: NDArray[np.uint32]
    weights: NDArray[np.float64] | None
    """One weight per entry of `columns`, or None."""

    @property
    def num_rows(self) -> int:
        return len(self.offsets) - 1

    @property
    def num_entries(self) -> int:
        return len(self.columns)

    def degrees(self) -> NDArray[np.int64]:
        """Return the number of entries in each row."""
        ends = self.offsets.astype(np.int64)
        return ends[1:] - ends[:-1]
