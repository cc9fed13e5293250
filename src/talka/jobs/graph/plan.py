"""What a graph and its cut are like, and how fast this machine walks along its edges."""

import statistics
import time
from typing import Final, NamedTuple

import numpy as np

from talka.graph import Graph
from talka.graph.csr import Csr
from talka.graph.kernels.gathering import GATHERS
from talka.graph.kernels.threads import balanced_cuts, over_ranges
from talka.graph.memory import BUILD_BYTES, WEIGHT_BYTES
from talka.jobs.graph.config import GraphConfig
from talka.machine import num_cores

_SAMPLE_EDGES: Final = 4_000_000
_NUM_SAMPLES: Final = 3
_LOOKS_BOTH_WAYS: Final = ("components", "communities")
"""Over several partitions these run over the edges without their directions."""


class Plan(NamedTuple):
    """What is known once the graph was read and cut."""

    num_vertices: int
    num_edges: int
    num_partitions: int
    balance: float
    """Edges of the largest partition over the mean."""
    cut_edges: float
    """Share of edges whose ends live apart."""
    num_mirrors: int
    """Values that travel when every vertex says something."""
    graph_bytes: int
    """Memory that the graph and its partitions take."""
    peak_bytes: int
    """While it is built."""
    edges_per_s: float
    """At which one pass over all edges goes, measured on a sample of the rows."""


def plan_of(graph: Graph, config: GraphConfig) -> Plan:
    placement = config.placement
    whole = graph
    if config.algorithm in _LOOKS_BOTH_WAYS and placement.num_partitions > 1:
        whole = graph.undirected()
    cut = whole.cut(placement.num_partitions, placement.partitioning)
    rows = [graph.out] if graph.into is graph.out else [graph.out, graph.into]
    if placement.num_partitions > 1:
        rows += [side for part in cut.parts for side in (part.out, part.into)]
    return Plan(
        num_vertices=graph.num_vertices,
        num_edges=graph.num_edges,
        num_partitions=placement.num_partitions,
        balance=cut.report.balance,
        cut_edges=cut.report.cut_edges,
        num_mirrors=cut.report.num_mirrors,
        graph_bytes=sum(_bytes_of(side) for side in rows),
        peak_bytes=graph.num_edges * (BUILD_BYTES + WEIGHT_BYTES * graph.is_weighted),
        edges_per_s=_sampled_rate(graph.into),
    )


def _bytes_of(rows: Csr) -> int:
    return sum(array.nbytes for array in rows if array is not None)


def _sampled_rate(into: Csr) -> float:
    """Sum what sources say over rows of about four million edges: a superstep in small."""
    num_rows = int(np.searchsorted(into.offsets, _SAMPLE_EDGES, side="right")) - 1
    num_rows = min(max(num_rows, 1), into.num_rows)
    said, sums = np.ones(into.num_rows), np.empty(num_rows)
    cuts = balanced_cuts(into.offsets[: num_rows + 1], num_cores())
    given = (into.offsets, into.columns, said, 0.0, sums)
    over_ranges(GATHERS["sum"], np.zeros_like(cuts), *given)  # loads the kernel
    times_s = []
    for _ in range(_NUM_SAMPLES):
        start_s = time.perf_counter()
        over_ranges(GATHERS["sum"], cuts, *given)
        times_s.append(time.perf_counter() - start_s)
    return int(into.offsets[num_rows]) / statistics.median(times_s)
