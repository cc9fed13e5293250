"""Breadth-first search: how many edges away every vertex is.

All messages to a vertex in one superstep are the same, and a vertex that was reached needs no more
of them: so the engine may stop looking at the first (direction-optimising; Beamer, Asanović and
Patterson, SC 2012).
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from talka.graph.algorithms.answers import Vertices, ids_at, numbers_of, to_the_end
from talka.graph.graph import GraphData
from talka.graph.programs.edge_program import EdgeProgram
from talka.graph.supersteps.running import RunOptions, run_program

if TYPE_CHECKING:
    import pyarrow as pa

_FAR = 2**31 - 1


def bfs(
    graph: GraphData,
    source: Vertices,
    *,
    with_parents: bool = False,
    options: RunOptions | None = None,
) -> "pa.Table":
    """Edges on a shortest path from the nearest source; NULL where there is no path."""
    options = to_the_end(graph, options)
    start = np.full(graph.num_vertices, _FAR, np.int32)
    start[numbers_of(graph, source, "source")] = 0
    program = EdgeProgram(
        initial=lambda start: start,
        message=lambda value: value + 1,
        combine="any",
        update=lambda value, combined: combined if combined < value else value,
        active=lambda old, value: value < old,
        starts=lambda value: value == 0,
        settled=lambda value: value < _FAR,
        value_type=np.int32,
        attributes={"start": start},
    )
    levels = run_program(graph, program, options).values
    table = graph.table(levels.astype(np.int64), levels < _FAR)
    if not with_parents:
        return table
    parents = _parents(graph, levels, options)
    has_parent = (levels > 0) & (levels < _FAR) & (parents < graph.num_vertices)
    parents = np.where(has_parent, parents, 0)
    return table.append_column("parent", ids_at(graph, graph.ids.ranks[parents], has_parent))


def _parents(graph: GraphData, levels: NDArray[np.int32], options: RunOptions) -> NDArray[np.int64]:
    """The smallest number one level above: no neighbour is higher, so the smallest pair has it."""
    program = EdgeProgram(
        initial=lambda: 0,
        message=lambda level, vertex: level * 2**32 + vertex,
        combine="min",
        update=lambda combined: combined % 2**32,
        value_type=np.int64,
        attributes={"level": levels.astype(np.int64)},
        num_supersteps=1,
    )
    return run_program(graph, program, replace(options, checkpoint_dir=None, resume=False)).values
