"""Graphs in memory: rows of edges in both directions, and the ids of vertices."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from talka.events.stream import Stream
from talka.graph.building.build import BuildRules, build, freeze, union
from talka.graph.csr import Csr
from talka.graph.ids import Ids
from talka.graph.kernels.simple import neighbours
from talka.graph.partitions.cutting import Partitioned, cut
from talka.graph.reading.detect import FileFormat, read_edges
from talka.machine import num_cores


class Degrees(NamedTuple):
    """Numbers of edges into and out of each vertex, indexed by vertex number."""

    incoming: NDArray[np.int64]
    outgoing: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GraphData:
    """The edges and vertex ids of a graph; immutable. Users work with its subclass `Graph`.

    Vertices are numbered from 0, in descending order of degree. Methods that return another graph
    return one of the same class.
    """

    out: Csr
    """Edges by source: rows are sources, columns are targets."""
    into: Csr
    """Edges by target: rows are targets, columns are sources. The same object as `out` in an
    undirected graph, where each edge is in the rows of both ends, and a loop is one entry."""
    ids: Ids
    directed: bool
    num_edges: int
    """Number of edges; an undirected edge counts once."""
    _fingerprint: list[str] = field(default_factory=list)
    _cuts: dict[tuple[int, str], Partitioned] = field(default_factory=dict)
    _variants: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_edges(
        cls,
        edges: Any,
        weights: Any = None,
        directed: bool = True,  # noqa: FBT001, FBT002  # as in other libraries
        *,
        vertices: Any = None,
        drop_duplicates: bool = False,
        drop_loops: bool = False,
        format: FileFormat = "auto",
        events: Stream | None = None,
    ) -> Self:
        """Build a graph from a list, arrays, a table, a sparse matrix or a file of edges.

        Parameters
        ----------
        edges
            A list of edges, each a tuple or list (source, target) or (source, target, weight); a
            tuple (sources, targets) of arrays or lists; an Arrow table (columns named source,
            target and weight; otherwise the first two, and the third if it holds numbers); a
            square scipy sparse matrix (every row is a vertex; entries are weights unless all are
            1); or the path of a file (see `talka.graph.reading`). Ids are integers or strings.
        weights
            One weight per edge, if `edges` has none.
        vertices
            Ids of vertices that exist even without edges.
        drop_duplicates
            Keep one of several edges with the same ends, with the smallest of their weights.
        drop_loops
            Drop edges from a vertex to itself, but keep the vertex.
        format
            Format of a file, if its name does not show it.
        events
            Receives progress and measured costs of the phases `graph/read` and `graph/build`.
        """
        events = events or Stream()
        rules = BuildRules(directed, drop_duplicates, drop_loops)
        # No variable for the edges that were read, so that `build` can free them early.
        built = build(
            read_edges(edges, weights, vertices, format=format, events=events),
            rules,
            num_threads=num_cores(),
            events=events,
        )
        return cls(built.out, built.into, built.ids, directed, built.num_edges)

    @property
    def num_vertices(self) -> int:
        """Number of vertices, those without edges included."""
        return self.out.num_rows

    @property
    def is_weighted(self) -> bool:
        """True if edges have weights."""
        return self.out.weights is not None

    def number_of(self, vertex: int | str) -> int:
        """Return the number of the vertex with this id, which is its row."""
        return self.ids.number_of(vertex)

    def numbers_of(self, vertices: Any) -> NDArray[np.uint32]:
        """Return the numbers of an array or sequence of vertex ids."""
        return self.ids.numbers_of(vertices)

    def vertex_of(self, number: int) -> int | str:
        """Return the id of the vertex with this number."""
        return self.ids.vertex_of(number)

    def degrees(self) -> Degrees:
        """Return the in-degrees and out-degrees of all vertices."""
        return Degrees(self.into.degrees(), self.out.degrees())

    def reversed(self) -> Self:
        """Return the graph with every edge reversed: same vertex numbers, no copy."""
        return type(self)(self.into, self.out, self.ids, self.directed, self.num_edges)

    def undirected(self) -> Self:
        """Return the graph without edge directions; vertices keep their numbers.

        Edges in both directions become two parallel edges. The result is cached.
        """
        if not self.directed:
            return self
        if "undirected" not in self._variants:
            both = union(self.out, self.into, num_cores())
            freeze(both)
            self._keep_variant("undirected", both, self.num_edges)
        variant: Self = self._variants["undirected"]
        return variant

    def simple(self) -> Self:
        """Return the graph without directions, duplicate edges, loops and weights.

        Vertices keep their numbers. The result is cached.
        """
        if "simple" not in self._variants:
            adjacent = neighbours(self.out, self.into, num_cores())
            rows = Csr(adjacent.offsets, adjacent.members, None)
            freeze(rows)
            self._keep_variant("simple", rows, rows.num_entries // 2)
        variant: Self = self._variants["simple"]
        return variant

    def _keep_variant(self, name: str, rows: Csr, num_edges: int) -> None:
        self._variants[name] = type(self)(rows, rows, self.ids, directed=False, num_edges=num_edges)

    def cut(self, num_partitions: int, how: str = "ranges") -> Partitioned:
        """Cut the graph into partitions. The result is cached for the next program.

        how
            "ranges" (of vertex numbers, balanced by degree), "hash" or "vertex_cut".
        """
        key = (num_partitions, how)
        if key not in self._cuts:
            self._cuts[key] = cut(self.out, self.into, num_partitions, how)
        return self._cuts[key]

    def table(
        self,
        values: NDArray[Any] | Mapping[str, NDArray[Any]],
        valid: NDArray[np.bool_] | None = None,
    ) -> "pa.Table":
        """Return an Arrow table with the column `vertex`, ascending, and the values per vertex.

        Parameters
        ----------
        values
            One array (its column is called `value`), or several by column name. Arrays are
            indexed by vertex number.
        valid
            False for vertices whose values are NULL, indexed by vertex number.
        """
        named = values if isinstance(values, Mapping) else {"value": values}
        missing = None if valid is None else ~valid[self.ids.numbers]
        columns = {"vertex": self.ids.as_arrow()}
        for name, array in named.items():
            columns[name] = pa.array(array[self.ids.numbers], mask=missing)
        return pa.table(columns)

    def fingerprint(self) -> str:
        """Return a hash of ids, edges and weights, equal for equal graphs. The result is cached."""
        if not self._fingerprint:
            self._fingerprint.append(_fingerprint(self))
        return self._fingerprint[0]

    def __repr__(self) -> str:
        vertices = f"{self.num_vertices:,} {'vertex' if self.num_vertices == 1 else 'vertices'}"
        edges = f"{self.num_edges:,} {'edge' if self.num_edges == 1 else 'edges'}"
        kind = "directed" if self.directed else "undirected"
        weighted = ", weighted" if self.is_weighted else ""
        return f"{type(self).__name__}({vertices}, {edges}, {kind}{weighted})"


AnyGraph = TypeVar("AnyGraph", bound=GraphData)
"""The class of graph that a function takes and returns."""


def _fingerprint(graph: GraphData) -> str:
    hashed = hashlib.blake2b(digest_size=16)
    hashed.update(repr((graph.num_vertices, graph.num_edges, graph.directed)).encode())
    for array in (*graph.out, graph.ids.numbers):
        if array is not None:
            hashed.update(array.data)
    if graph.ids.are_strings:
        for buffer in graph.ids.ascending.buffers()[1:]:
            hashed.update(buffer)
    else:
        hashed.update(graph.ids.ascending.data)
    return hashed.hexdigest()
