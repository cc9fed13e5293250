"""What algorithms share: graphs and vertices read in other ways, and answers that name vertices."""

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
"""One id, or several."""


def to_the_end(graph: GraphData, options: RunOptions | None) -> RunOptions:
    """Options for a program that always ends: in each superstep at least one vertex is settled."""
    options = options or RunOptions()
    if options.max_supersteps is not None:
        return options
    return replace(options, max_supersteps=graph.num_vertices + 2)


def numbers_of(graph: GraphData, vertices: Vertices, name: str) -> NDArray[np.uint32]:
    """The number of each; `name` is what the argument is called."""
    several: Any = [vertices] if np.ndim(vertices) == 0 else vertices
    if len(several) == 0:
        raise InvalidValueError(name, vertices, "at least one vertex")
    return graph.numbers_of(several)


def by_rank(graph: GraphData) -> GraphData:
    """The same graph, with vertices that are called by the rank of their id.

    Ranks compare as ids do, strings too, and are small whole numbers: labels for kernels.
    """
    ids = Ids.ranked(np.arange(graph.num_vertices), graph.ids.ranks)
    return replace(graph, ids=ids, _fingerprint=[], _variants={})


def ids_at(
    graph: GraphData, ranks: NDArray[np.uint32], valid: NDArray[np.bool_] | None = None
) -> "pa.Table":
    """The ids that have these ranks, in the order of a table; `ranks` are by number."""
    missing = None if valid is None else ~valid[graph.ids.numbers]
    return graph.ids.as_arrow().take(pa.array(ranks[graph.ids.numbers], mask=missing))


def table_of_ids(graph: GraphData, ranks: NDArray[np.uint32]) -> "pa.Table":
    """A table whose values are vertices."""
    return pa.table({"vertex": graph.ids.as_arrow(), "value": ids_at(graph, ranks)})
