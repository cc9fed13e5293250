"""Shortest paths by weight: vertices whose distance has decreased send it to their targets.

The order of messages does not change a smallest sum, so partitions run local rounds until their own
vertices no longer change.
"""

from typing import TYPE_CHECKING

import numpy as np

from talka.errors import InvalidValueError
from talka.graph.algorithms.answers import Vertices, numbers_of, to_the_end
from talka.graph.graph import GraphData
from talka.graph.programs.edge_program import EdgeProgram
from talka.graph.supersteps.running import RunOptions, run_program

if TYPE_CHECKING:
    import pyarrow as pa


def sssp(graph: GraphData, source: Vertices, *, options: RunOptions | None = None) -> "pa.Table":
    """Return the smallest sum of weights on a path from the nearest source; NULL if none exists.

    Without weights each edge counts 1.
    """
    _check_weights(graph)
    start = np.full(graph.num_vertices, np.inf)
    start[numbers_of(graph, source, "source")] = 0
    program = EdgeProgram(
        initial=lambda start: start,
        message=_weighted if graph.is_weighted else _unweighted,
        combine="min",
        update=lambda value, combined: min(value, combined),
        active=lambda old, value: value < old,
        starts=lambda value: value == 0,
        attributes={"start": start},
        order_independent=True,
    )
    distances = run_program(graph, program, to_the_end(graph, options)).values
    return graph.table(distances, np.isfinite(distances))


def _weighted(value: float, weight: float) -> float:
    return value + weight


def _unweighted(value: float) -> float:
    return value + 1.0


def _check_weights(graph: GraphData) -> None:
    weights = graph.out.weights
    if weights is None or len(weights) == 0 or weights.min() >= 0:
        return
    entry = int(np.argmin(weights))
    source = graph.vertex_of(int(np.searchsorted(graph.out.offsets, entry, side="right")) - 1)
    target = graph.vertex_of(int(graph.out.columns[entry]))
    name = f"the weight of the edge from {source!r} to {target!r}"
    raise InvalidValueError(name, float(weights[entry]), "0 or more for shortest paths")
