"""The graph that users work with: its data (`graph.py`), plus algorithms and programs to run on it.

The layers below know `GraphData` only, so the data structure depends on no algorithm.
"""

from typing import Any

import pyarrow as pa

from talka.graph import algorithms
from talka.graph.algorithms.answers import Vertices
from talka.graph.algorithms.pagerank import Sources
from talka.graph.graph import GraphData
from talka.graph.programs.edge_program import EdgeProgram
from talka.graph.programs.vertex_program import VertexProgram
from talka.graph.supersteps.running import RunOptions, run_program


class Graph(GraphData):
    """An immutable graph whose vertices are numbered from 0, in descending order of degree.

    Methods that run an algorithm return a table with the columns `vertex`, ascending, and `value`.

    >>> graph = Graph.from_edges(([10, 10, 30], [20, 30, 20]))
    >>> graph
    Graph(3 vertices, 3 edges, directed)
    >>> [graph.vertex_of(number) for number in graph.out.columns[: graph.out.offsets[1]]]
    [20, 30]
    >>> graph.bfs(10)["value"].to_pylist()
    [0, 1, 1]
    """

    __slots__ = ()

    def run(
        self, program: EdgeProgram | VertexProgram, options: RunOptions | None = None
    ) -> pa.Table:
        """Run a program to its end and return its values per vertex, as `table` does.

        A program that changes the graph returns the values of the vertices of the changed graph.
        """
        outcome = run_program(self, program, options or RunOptions())
        return outcome.graph.table(outcome.columns)

    def bfs(
        self, source: Vertices, *, with_parents: bool = False, options: RunOptions | None = None
    ) -> pa.Table:
        """Return the number of edges on a shortest path from the nearest source; NULL if none.

        `with_parents` adds a column `parent`: the vertex before on such a path. If there are
        several, it is the one with the smallest number (the greatest degree).
        """
        return algorithms.bfs(self, source, with_parents=with_parents, options=options)

    def sssp(self, source: Vertices, *, options: RunOptions | None = None) -> pa.Table:
        """Return the smallest sum of weights on a path from the nearest source; NULL if none."""
        return algorithms.sssp(self, source, options=options)

    def pagerank(
        self,
        damping: float = 0.85,
        num_supersteps: int | None = None,
        *,
        tolerance: float | None = None,
        sources: Sources | None = None,
        options: RunOptions | None = None,
    ) -> pa.Table:
        """Return the share of time that a random walk along edges spends at each vertex.

        Takes 20 supersteps, or continues until the changes of a superstep add up to less than
        `tolerance` (at most 100 supersteps). With `sources` (ids, or ids with weights) the walk
        jumps only to these vertices.
        """
        return algorithms.pagerank(
            self,
            damping,
            num_supersteps,
            tolerance=tolerance,
            sources=sources,
            options=options,
        )

    def components(self, *, options: RunOptions | None = None) -> pa.Table:
        """Return the smallest id in the weakly connected component of each vertex."""
        return algorithms.components(self, options=options)

    def strong_components(self, *, options: RunOptions | None = None) -> pa.Table:
        """Return the smallest id in the strongly connected component of each vertex."""
        return algorithms.strong_components(self, options=options)

    def communities(
        self, num_supersteps: int = 10, *, options: RunOptions | None = None
    ) -> pa.Table:
        """Return labels (ids) after `num_supersteps` of label propagation as LDBC defines it."""
        return algorithms.communities(self, num_supersteps, options=options)

    def clustering(self, *, options: RunOptions | None = None) -> pa.Table:
        """Return local clustering coefficients as LDBC defines them."""
        return algorithms.clustering(self, options=options)

    def triangles(self, *, options: RunOptions | None = None) -> pa.Table:
        """Return the number of triangles that each vertex is part of."""
        return algorithms.triangles(self, options=options)

    def num_triangles(self, *, options: RunOptions | None = None) -> int:
        """Return the number of triangles in the graph."""
        return algorithms.num_triangles(self, options=options)

    def cores(self, *, options: RunOptions | None = None) -> pa.Table:
        """Return the core number of each vertex."""
        return algorithms.cores(self, options=options)

    def degree_statistics(self) -> dict[str, Any]:
        """Return the distribution of degrees, and counts of isolated vertices, loops, copies."""
        return algorithms.degree_statistics(self)
