"""PageRank: the share of time that a random walk with jumps spends at each vertex.

At a vertex without out-edges the walk always jumps. Jumps go to any vertex or, if personalised, to
the sources.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from talka.errors import InvalidValueError
from talka.graph.algorithms.answers import Vertices, numbers_of
from talka.graph.graph import GraphData
from talka.graph.programs.edge_program import Aggregate, EdgeProgram
from talka.graph.supersteps.running import RunOptions, run_program

if TYPE_CHECKING:
    import pyarrow as pa

Sources = Vertices | Mapping[Any, float]
"""Ids of vertices, or ids with weights."""


def pagerank(
    graph: GraphData,
    damping: float = 0.85,
    num_supersteps: int | None = None,
    *,
    tolerance: float | None = None,
    sources: Sources | None = None,
    options: RunOptions | None = None,
) -> "pa.Table":
    """Return the share of time at each vertex; all add up to 1. Weights of edges do not count.

    `damping` is the probability of following an edge instead of jumping. Runs 20 supersteps or,
    with `tolerance`, until the changes of one superstep add up to less than that, at most 100.
    Jumps go to `sources` if given: ids, or ids with weights.
    """
    if not 0 <= damping <= 1:
        raise InvalidValueError("damping", damping, "a number from 0 to 1")
    if tolerance is not None and not tolerance > 0:
        raise InvalidValueError("tolerance", tolerance, "a number above 0")
    if num_supersteps is None:
        num_supersteps = 20 if tolerance is None else 100
    sinks = Aggregate(lambda value, out_degree: value if out_degree == 0 else 0.0)
    change = Aggregate(lambda value, old: abs(value - old))
    program = EdgeProgram(
        initial=_anywhere if sources is None else lambda restart: restart,
        message=lambda value, out_degree: value / out_degree,
        combine="sum",
        update=_jump_anywhere if sources is None else _jump_to_sources,
        aggregates={"sinks": sinks} if tolerance is None else {"sinks": sinks, "change": change},
        attributes={} if sources is None else {"restart": restart_shares(graph, sources)},
        parameters={"damping": damping},
        until=None if tolerance is None else lambda totals: totals["change"] < tolerance,
        num_supersteps=num_supersteps,
    )
    return graph.table(run_program(graph, program, options or RunOptions()).values)


def _anywhere(num_vertices: int) -> float:
    return 1 / num_vertices


def _jump_anywhere(combined: float, sinks: float, num_vertices: int, damping: float) -> float:
    return (1 - damping) / num_vertices + damping * (combined + sinks / num_vertices)


def _jump_to_sources(combined: float, sinks: float, restart: float, damping: float) -> float:
    return restart * (1 - damping + damping * sinks) + damping * combined


def restart_shares(graph: GraphData, sources: Sources) -> NDArray[np.float64]:
    """Return the share of jumps that go to each vertex, by number."""
    if isinstance(sources, Mapping):
        vertices, weights = list(sources), np.array(list(sources.values()), np.float64)
        numbers = numbers_of(graph, vertices, "sources")
    else:
        numbers = numbers_of(graph, sources, "sources")
        weights = np.ones(len(numbers))
    if not (weights >= 0).all() or not 0 < weights.sum() < np.inf:
        raise InvalidValueError(
            "sources", sources, "ids with finite weights of 0 or more, not all 0"
        )
    shares = np.bincount(numbers, weights, graph.num_vertices)
    return np.asarray(shares / weights.sum(), np.float64)
