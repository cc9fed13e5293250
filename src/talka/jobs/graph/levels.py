"""Levels of a search over a graph: counted by a pilot, or extrapolated from it.

A frontier program takes one superstep per level, so their number decides its time on long paths. The
pilot is a search by one thread that ends after a few million edges.
"""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np

from talka.graph.csr import Csr
from talka.graph.kernels.levels import count_levels

_MAX_EDGES: Final = 8_000_000  # a fifth of a second
_MAX_LEVELS: Final = 100_000


class Levels(NamedTuple):
    """Levels of a breadth-first search."""

    num_levels: int
    active_edges: tuple[int, ...]
    """Edges that leave the vertices of each level, as far as they were counted."""
    is_estimate: bool
    """Whether the pilot ended before the search, and the number of levels was extrapolated."""


def levels_from(out: Csr, starts: Sequence[int]) -> Levels:
    """Count the levels of a search along `out` that begins at the vertices `starts`."""
    num_active, active_edges = np.zeros(_MAX_LEVELS, np.int64), np.zeros(_MAX_LEVELS, np.int64)
    numbers = np.asarray(starts, np.int64)
    count, is_whole = count_levels(
        out.offsets, out.columns, numbers, _MAX_EDGES, num_active, active_edges
    )
    edges = tuple(active_edges[:count].tolist())
    if is_whole:
        return Levels(count, edges, is_estimate=False)
    return Levels(
        extrapolated_levels(num_active[:count].tolist(), out.num_rows), edges, is_estimate=True
    )


def extrapolated_levels(num_active: Sequence[int], num_vertices: int) -> int:
    """Return the number of levels until all vertices are reached, if they grow as before.

    The number of reached vertices grows with a power of the level: 2 in a grid, more in networks
    of hubs. The power is that of the second half of the levels.

    >>> extrapolated_levels([1, 4, 8, 12, 16, 20, 24, 28], 2 * 32 * 32)
    30
    """
    reached = list(accumulate(num_active))
    count = len(reached)
    if count < 2:
        return count + 1
    half = count // 2
    power = math.log(reached[-1] / reached[half - 1]) / math.log(count / half)
    growth = math.pow(num_vertices / reached[-1], 1 / max(power, 1.0))
    return max(count + 1, round(count * growth))
