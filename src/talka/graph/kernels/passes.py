"""How fast this machine passes over the edges of a graph."""

import statistics
import time
from typing import Final

import numpy as np

from talka.graph.csr import Csr
from talka.graph.kernels.gathering import GATHERS
from talka.graph.kernels.threads import balanced_cuts, over_ranges
from talka.machine import num_cores

_SAMPLE_EDGES: Final = 4_000_000
_NUM_SAMPLES: Final = 9


def gathered_edges_per_s(into: Csr, num_vertices: int) -> float:
    """Time a small superstep: sum the values of sources over rows of about four million edges.

    Returns edges per second. The rows may be a sample of a graph with more vertices: the array of
    values has the size of the whole graph, because a smaller one would fit into caches.
    """
    num_rows = int(np.searchsorted(into.offsets, _SAMPLE_EDGES, side="right")) - 1
    num_rows = min(max(num_rows, 1), into.num_rows)
    num_edges = int(into.offsets[num_rows])
    columns = into.columns
    if num_vertices > into.num_rows:
        stretch = num_vertices / into.num_rows
        columns = (columns[:num_edges] * stretch).astype(columns.dtype)
    values, sums = np.ones(num_vertices), np.empty(num_rows)
    cuts = balanced_cuts(into.offsets[: num_rows + 1], num_cores())
    arguments = (into.offsets, columns, values, 0.0, sums)
    over_ranges(GATHERS["sum"], np.zeros_like(cuts), *arguments)  # loads the kernel
    times_s = []
    for _ in range(_NUM_SAMPLES):
        start_s = time.perf_counter()
        over_ranges(GATHERS["sum"], cuts, *arguments)
        times_s.append(time.perf_counter() - start_s)
    return num_edges / statistics.median(times_s)
