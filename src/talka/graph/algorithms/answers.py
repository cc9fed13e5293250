"""Helpers of the algorithms: limits, lookup of vertices, and tables whose values are vertices."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from talka.errors import InvalidValueError
from talka.graph.graph import GraphData
from talka.graph.ids import Ids
from talka.graph.supersteps.running import RunOptions

Vertices = int | str | Sequence[int] | Sequence[str] | NDArray[Any]
"""One vertex id, or several."""


def to_the_end(graph: GraphData, options: RunOptions | None) -> RunOptions:
    """Return options with enough supersteps for a program that settles a vertex in each."""
    options = options or RunOptions()
    if options.max_supersteps is not None:
        return options
    return replace(options, max_supersteps=graph.num_vertices + 2)


def numbers_of(graph: GraphData, vertices: Vertices, name: str) -> NDArray[np.uint32]:
    """Return the number of each vertex; `name` is the name of the argument, for errors."""
    ids: Any = [vertices] if np.ndim(vertices) == 0 else vertices
    if len(ids) == 0:
        raise InvalidValueError(name, vertices, "at least one vertex")
    return graph.numbers_of(ids)


def by_rank(graph: GraphData) -> GraphData:
    """Return the same graph with the rank of each id as its id.

    Ranks compare like the ids, also if those are strings, and are small integers: labels for
    kernels.
    """
    ids = Ids.ranked(np.arange(graph.num_vertices), graph.ids.ranks)
    return replace(graph, ids=ids, _fingerprint=[], _variants={})


def ids_at(
    graph: GraphData, ranks: NDArray[np.uint32], valid: NDArray[np.bool_] | None = None
) -> "pa.Table":
    """Return the ids with these ranks, in the order of tables; `ranks` are by vertex number."""
    missing = None if valid is None else ~valid[graph.ids.numbers]
    return graph.ids.as_arrow().take(pa.array(ranks[graph.ids.numbers], mask=missing))


def table_of_ids(graph: GraphData, ranks: NDArray[np.uint32]) -> "pa.Table":
    """Return a table whose values are vertices."""
    return pa.table({"vertex": graph.ids.as_arrow(), "value": ids_at(graph, ranks)})
