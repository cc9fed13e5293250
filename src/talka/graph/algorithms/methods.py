"""Algorithms as methods of `Graph`."""

from typing import TYPE_CHECKING, Any, cast

from talka.graph import algorithms
from talka.graph.algorithms.answers import Vertices
from talka.graph.algorithms.pagerank import Sources
from talka.graph.supersteps.running import RunOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from talka.graph.graph import Graph


class Methods:
    """Algorithms over a graph. Tables have the columns `vertex`, ascending, and `value`."""

    __slots__ = ()

    def bfs(
        self, source: Vertices, *, with_parents: bool = False, options: RunOptions | None = None
    ) -> "pa.Table":
        """Return the number of edges on a shortest path from the nearest source; NULL without one.

        `with_parents` adds a column `parent`: the previous vertex on such a path; of several the
        one with the smallest number (the greatest degree).
        """
        return algorithms.bfs(
            cast("Graph", self), source, with_parents=with_parents, options=options
        )

    def sssp(self, source: Vertices, *, options: RunOptions | None = None) -> "pa.Table":
        """Return the smallest sum of weights on a path from the nearest source; NULL if none."""
        return algorithms.sssp(cast("Graph", self), source, options=options)

    def pagerank(
        self,
        damping: float = 0.85,
        num_supersteps: int | None = None,
        *,
        tolerance: float | None = None,
        sources: Sources | None = None,
        options: RunOptions | None = None,
    ) -> "pa.Table":
        """Return the share of time that a random walk spends at each vertex.

        Runs 20 supersteps or, with `tolerance`, until the changes of one superstep add up to less
        than that (at most 100). With `sources` (ids, or ids with weights) jumps go only there.
        """
        return algorithms.pagerank(
            cast("Graph", self),
            damping,
            num_supersteps,
            tolerance=tolerance,
            sources=sources,
            options=options,
        )

    def components(self, *, options: RunOptions | None = None) -> "pa.Table":
        """Return the smallest id in the weakly connected component of each vertex."""
        return algorithms.components(cast("Graph", self), options=options)

    def strong_components(self, *, options: RunOptions | None = None) -> "pa.Table":
        """Return the smallest id in the strongly connected component of each vertex."""
        return algorithms.strong_components(cast("Graph", self), options=options)

    def communities(
        self, num_supersteps: int = 10, *, options: RunOptions | None = None
    ) -> "pa.Table":
        """Return labels, which are ids, after label propagation by LDBC's rule."""
        return algorithms.communities(cast("Graph", self), num_supersteps, options=options)

    def clustering(self, *, options: RunOptions | None = None) -> "pa.Table":
        """Return local clustering coefficients by LDBC's rule."""
        return algorithms.clustering(cast("Graph", self), options=options)

    def triangles(self, *, options: RunOptions | None = None) -> "pa.Table":
        """Return the number of triangles that each vertex is part of."""
        return algorithms.triangles(cast("Graph", self), options=options)

    def num_triangles(self, *, options: RunOptions | None = None) -> int:
        """Return the number of triangles in the graph."""
        return algorithms.num_triangles(cast("Graph", self), options=options)

    def cores(self, *, options: RunOptions | None = None) -> "pa.Table":
        """Return the core number of each vertex."""
        return algorithms.cores(cast("Graph", self), options=options)

    def degree_statistics(self) -> dict[str, Any]:
        """Return distributions of degrees, and counts of isolated vertices, loops, duplicates."""
        return algorithms.degree_statistics(cast("Graph", self))
