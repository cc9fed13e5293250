"""What every reader gives: edges as columns, not yet numbered."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Edges(NamedTuple):
    """Edge number i goes from `sources[i]` to `targets[i]`."""

    sources: Any
    """int64, uint64 or uint32, or Arrow strings; of the same type as `targets`."""
    targets: Any
    weights: NDArray[np.float64] | None = None
    vertices: Any = None
    """Ids that exist even where no edge has them; of the same type, or None."""
    twice: bool = False
    """Whether an undirected edge is named at both of its ends, as lists of neighbours do."""
    notes: tuple[str, ...] = ()
    """What was decided while reading, for people: which columns were taken, what is not an edge."""

    @property
    def has_strings(self) -> bool:
        return not isinstance(self.sources, np.ndarray)
