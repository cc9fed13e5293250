"""Breadth-first search: the distance of every vertex from the nearest source, in edges.

All messages to a vertex in one superstep are equal, and a vertex that was reached needs no further
ones. A pull can therefore stop at the first source that sends, and skip reached vertices
(direction-optimising BFS; Beamer, Asanović and Patterson, SC 2012).
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
    """Return the number of edges on a shortest path from the nearest source; NULL if none exists.

    `with_parents` adds a column `parent`, the previous vertex on such a path.
    """
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
    """Return the number of each vertex's parent: its first in-neighbour one level closer.

    In-neighbours are at most one level closer, so the smallest (level, number) is the parent.
    """
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
