"""Size of a graph and its partitions, and how fast this machine passes over its edges.

A small graph is read for its plan. The layout of a large graph is scaled up from a sample, so that a
plan takes only seconds.
"""

import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from talka.graph import Graph
from talka.graph.algorithms import ALGORITHMS
from talka.graph.algorithms.answers import numbers_of
from talka.graph.building.memory import BUILD_BYTES, WEIGHT_BYTES
from talka.graph.csr import Csr
from talka.graph.kernels.passes import gathered_edges_per_s
from talka.jobs.graph.arguments import arguments_for
from talka.jobs.graph.config import GraphConfig
from talka.jobs.graph.levels import Levels, levels_from
from talka.jobs.graph.sample import sample_of
from talka.jobs.growth import extrapolated

_IGNORES_DIRECTION: Final = ("components", "communities")
"""Algorithms that treat edges as undirected if there are several partitions."""


class GraphLayout(NamedTuple):
    """Properties of a graph and its partitions that are known before the algorithm runs."""

    num_vertices: int
    num_edges: int
    num_partitions: int
    balance: float
    """Edges of the largest partition divided by the mean."""
    cut_edges: float
    """Share of edges whose ends are in different partitions."""
    num_mirrors: int
    """Values sent in a superstep in which every vertex sends."""
    graph_bytes: int
    """Memory of the graph and its partitions."""
    peak_bytes: int
    """Peak memory while the graph is built."""
    edges_per_s: float
    """Edges per second in one pass over all edges, measured on a sample of the rows."""
    levels: Levels | None = None
    """Levels of a search from the source of bfs and sssp; None for others and large graphs."""
    is_estimate: bool = False
    """Whether the layout was scaled up from a sample; otherwise the whole graph was read."""


def layout_of(graph: Graph, config: GraphConfig, *, is_sample: bool = False) -> GraphLayout:
    """Partition a graph as configured, and time a pass over a sample of its edges.

    Levels are not counted in a sample, as its paths are not those of the whole graph.
    """
    placement = config.placement
    whole = graph
    if config.algorithm in _IGNORES_DIRECTION and placement.num_partitions > 1:
        whole = graph.undirected()
    cut = whole.cut(placement.num_partitions, placement.partitioning)
    rows = [graph.out] if graph.into is graph.out else [graph.out, graph.into]
    if placement.num_partitions > 1:
        rows += [side for partition in cut.partitions for side in (partition.out, partition.into)]
    return GraphLayout(
        num_vertices=graph.num_vertices,
        num_edges=graph.num_edges,
        num_partitions=placement.num_partitions,
        balance=cut.report.balance,
        cut_edges=cut.report.cut_edges,
        num_mirrors=cut.report.num_mirrors,
        graph_bytes=sum(_bytes_of(side) for side in rows),
        peak_bytes=graph.num_edges * (BUILD_BYTES + WEIGHT_BYTES * graph.is_weighted),
        edges_per_s=gathered_edges_per_s(graph.into, graph.num_vertices),
        levels=_levels(graph, config) if not is_sample else None,
    )


def _levels(graph: Graph, config: GraphConfig) -> Levels | None:
    """Return how a search spreads from the source of the algorithm; None if it has none."""
    if not ALGORITHMS[config.algorithm].needs_source:
        return None
    sources = arguments_for(config, graph)["source"]
    return levels_from(graph.out, numbers_of(graph, sources, "source").tolist())


def estimated_layout(config: GraphConfig) -> GraphLayout | None:
    """Estimate the layout of a large graph from a sample; None if its format cannot be sampled."""
    source = config.input
    with TemporaryDirectory(prefix="talka-") as folder:
        sample = sample_of(Path(source.edges), source.file_format, Path(folder))
        if sample is None:
            return None
        half, whole = (
            Graph.from_edges(
                str(path),
                directed=source.directed,
                drop_duplicates=source.drop_duplicates,
                drop_loops=source.drop_loops,
                format=sample.format,
            )
            for path in (sample.half, sample.whole)
        )
    doublings = math.log2(max(1.0, sample.growth))
    first, layout = (layout_of(graph, config, is_sample=True) for graph in (half, whole))

    def grown(half: int, whole: int) -> int:
        return round(extrapolated(half, whole, doublings))

    num_vertices = grown(first.num_vertices, layout.num_vertices)
    if (id_range := _range_of_ids(whole)) is not None:
        num_vertices = min(num_vertices, id_range)
    most_mirrors = num_vertices * (layout.num_partitions - 1)
    num_edges = round(layout.num_edges * sample.growth)
    return layout._replace(
        num_vertices=num_vertices,
        num_edges=num_edges,
        num_mirrors=min(grown(first.num_mirrors, layout.num_mirrors), most_mirrors),
        graph_bytes=round(layout.graph_bytes * sample.growth),
        peak_bytes=round(layout.peak_bytes * sample.growth),
        edges_per_s=gathered_edges_per_s(whole.into, num_vertices),
        is_estimate=True,
    )


def _range_of_ids(graph: Graph) -> int | None:
    """Return the number of integers from the smallest to the largest id; None for string ids.

    Most files number their vertices without gaps, so this is the number of vertices.
    """
    if graph.ids.are_strings or not graph.num_vertices:
        return None
    return int(graph.ids.ascending[-1]) - int(graph.ids.ascending[0]) + 1


def _bytes_of(rows: Csr) -> int:
    return sum(array.nbytes for array in rows if array is not None)
