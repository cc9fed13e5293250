"""The result of every reader: edges as columns of ids, without vertex numbers."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Edges(NamedTuple):
    """Edges as columns: edge i goes from `sources[i]` to `targets[i]`."""

    sources: Any
    """Ids: int64, uint64, uint32, or Arrow strings; of the same type as `targets`."""
    targets: Any
    weights: NDArray[np.float64] | None = None
    vertices: Any = None
    """Ids of vertices that exist even without edges; of the same type, or None."""
    twice: bool = False
    """True if an undirected edge occurs at both of its ends, as in lists of neighbours."""
    notes: tuple[str, ...] = ()
    """Decisions made while reading, for users: which columns are used, which line is skipped."""

    @property
    def has_strings(self) -> bool:
        return not isinstance(self.sources, np.ndarray)
