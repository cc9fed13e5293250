"""Edges grouped by one of their ends: the two arrays behind every loop over a graph."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Csr(NamedTuple):
    """Row r has `columns[offsets[r]:offsets[r + 1]]`, ascending, and weights beside them.

    Numbers are unsigned and of 32 bits wherever they fit: signed ones cost kernels 30 to 70% of
    their speed, because every index is checked for a sign and widened.
    """

    offsets: NDArray[Any]
    """One more than there are rows; uint32, or uint64 for 2**32 entries and more."""
    columns: NDArray[np.uint32]
    weights: NDArray[np.float64] | None

    @property
    def num_rows(self) -> int:
        return len(self.offsets) - 1

    @property
    def num_entries(self) -> int:
        return len(self.columns)

    def degrees(self) -> NDArray[np.int64]:
        """Entries in each row."""
        ends = self.offsets.astype(np.int64)
        return ends[1:] - ends[:-1]
