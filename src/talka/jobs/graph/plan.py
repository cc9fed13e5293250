"""What a graph and its cut are like, and how fast this machine walks along its edges.

Small graphs are read for it. The plan of a large one is scaled up from a sample, so that it is there
in seconds.
"""

import math
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import numpy as np

from talka.graph import Graph
from talka.graph.building.memory import BUILD_BYTES, WEIGHT_BYTES
from talka.graph.csr import Csr
from talka.graph.kernels.gathering import GATHERS
from talka.graph.kernels.threads import balanced_cuts, over_ranges
from talka.jobs.graph.config import GraphConfig
from talka.jobs.graph.sample import sample_of
from talka.jobs.growth import extrapolated
from talka.machine import num_cores

_SAMPLE_EDGES: Final = 4_000_000
_NUM_SAMPLES: Final = 3
_LOOKS_BOTH_WAYS: Final = ("components", "communities")
"""Over several partitions these run over the edges without their directions."""


class Plan(NamedTuple):
    """What is known of a graph and its cut before it runs."""

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
    is_estimate: bool = False
    """Scaled up from a sample of the file; otherwise the whole graph was read."""


def plan_of(graph: Graph, config: GraphConfig) -> Plan:
    placement = config.placement
    whole = graph
    if config.algorithm in _LOOKS_BOTH_WAYS and placement.num_partitions > 1:
        whole = graph.undirected()
    cut = whole.cut(placement.num_partitions, placement.partitioning)
    rows = [graph.out] if graph.into is graph.out else [graph.out, graph.into]
    if placement.num_partitions > 1:
        rows += [side for partition in cut.partitions for side in (partition.out, partition.into)]
    return Plan(
        num_vertices=graph.num_vertices,
        num_edges=graph.num_edges,
        num_partitions=placement.num_partitions,
        balance=cut.report.balance,
        cut_edges=cut.report.cut_edges,
        num_mirrors=cut.report.num_mirrors,
        graph_bytes=sum(_bytes_of(side) for side in rows),
        peak_bytes=graph.num_edges * (BUILD_BYTES + WEIGHT_BYTES * graph.is_weighted),
        edges_per_s=_sampled_rate(graph.into, graph.num_vertices),
    )


def estimated_plan(config: GraphConfig) -> Plan | None:
    """Plan for a large file from a sample of it; None if a part of such a file cannot be read."""
    given = config.input
    with TemporaryDirectory(prefix="talka-") as folder:
        sample = sample_of(Path(given.edges), given.file_format, Path(folder))
        if sample is None:
            return None
        half, whole = (
            Graph.from_edges(
                str(path),
                directed=given.directed,
                drop_duplicates=given.drop_duplicates,
                drop_loops=given.drop_loops,
                format=sample.format,
            )
            for path in (sample.half, sample.whole)
        )
    doublings = math.log2(max(1.0, sample.growth))
    first, plan = plan_of(half, config), plan_of(whole, config)

    def grown(half: int, whole: int) -> int:
        return round(extrapolated(half, whole, doublings))

    num_vertices = grown(first.num_vertices, plan.num_vertices)
    if (id_range := _range_of_ids(whole)) is not None:
        num_vertices = min(num_vertices, id_range)
    most_mirrors = num_vertices * (plan.num_partitions - 1)
    num_edges = round(plan.num_edges * sample.growth)
    return plan._replace(
        num_vertices=num_vertices,
        num_edges=num_edges,
        num_mirrors=min(grown(first.num_mirrors, plan.num_mirrors), most_mirrors),
        graph_bytes=round(plan.graph_bytes * sample.growth),
        peak_bytes=round(plan.peak_bytes * sample.growth),
        edges_per_s=_sampled_rate(whole.into, num_vertices),
        is_estimate=True,
    )


def _range_of_ids(graph: Graph) -> int | None:
    """Return how many integer ids lie between the smallest and the largest, both included.

    Most files number their vertices without gaps: it is then their number.
    """
    if graph.ids.are_strings or not graph.num_vertices:
        return None
    return int(graph.ids.ascending[-1]) - int(graph.ids.ascending[0]) + 1


def _bytes_of(rows: Csr) -> int:
    return sum(array.nbytes for array in rows if array is not None)


def _sampled_rate(into: Csr, num_vertices: int) -> float:
    """Sum the values of sources over rows of about four million edges: a superstep in small.

    The values are as many as those of the whole graph: fewer would fit into caches.
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
    given = (into.offsets, columns, values, 0.0, sums)
    over_ranges(GATHERS["sum"], np.zeros_like(cuts), *given)  # loads the kernel
    times_s = []
    for _ in range(_NUM_SAMPLES):
        start_s = time.perf_counter()
        over_ranges(GATHERS["sum"], cuts, *given)
        times_s.append(time.perf_counter() - start_s)
    return num_edges / statistics.median(times_s)
