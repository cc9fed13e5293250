"""A graph in memory: rows of edges in both directions, and what its vertices are called."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from talka.events.stream import Stream
from talka.graph.algorithms.methods import Methods
from talka.graph.building.build import Rules, build, freeze, union
from talka.graph.csr import Csr
from talka.graph.ids import Ids
from talka.graph.kernels.simple import neighbours
from talka.graph.partitions.cutting import Partitioned, cut
from talka.graph.programs.edge_program import EdgeProgram
from talka.graph.programs.vertex_program import VertexProgram
from talka.graph.reading.detect import FileFormat, read_edges
from talka.graph.supersteps.running import RunOptions, run_program
from talka.machine import num_cores


class Degrees(NamedTuple):
    """Edges into and out of each vertex, by number."""

    incoming: NDArray[np.int64]
    outgoing: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Graph(Methods):
    """Vertices are numbered from 0 on, in descending order of degree; nothing in it ever changes.

    >>> graph = Graph.from_edges(([10, 10, 30], [20, 30, 20]))
    >>> graph
    Graph(3 vertices, 3 edges, directed)
    >>> [graph.vertex_of(number) for number in graph.out.columns[: graph.out.offsets[1]]]
    [20, 30]
    """

    out: Csr
    """Rows are sources, columns are targets."""
    into: Csr
    """Rows are targets, columns are sources. The same object as `out` in an undirected graph,
    where each edge is in the rows of both of its ends, and a loop is one entry."""
    ids: Ids
    directed: bool
    num_edges: int
    """As given: an undirected edge counts once."""
    _fingerprint: list[str] = field(default_factory=list)
    _cuts: dict[tuple[int, str], Partitioned] = field(default_factory=dict)
    _readings: dict[str, "Graph"] = field(default_factory=dict)

    @classmethod
    def from_edges(
        cls,
        edges: Any,
        weights: Any = None,
        directed: bool = True,  # noqa: FBT001, FBT002  # a word that others rely on
        *,
        vertices: Any = None,
        drop_duplicates: bool = False,
        drop_loops: bool = False,
        format: FileFormat = "auto",
        events: Stream | None = None,
    ) -> "Graph":
        """Build a graph from whatever holds edges.

        Parameters
        ----------
        edges
            A list of edges, each a tuple or list (source, target) or (source, target, weight); a
            tuple (sources, targets) of arrays or lists. Ids are whole numbers or strings. Or an
            Arrow table (columns named source, target and weight, or the first two, and a third one
            of numbers); a square scipy sparse matrix (every row is a vertex; entries are weights
            unless all are 1); or the path of a file (see `talka.graph.reading`).
        weights
            One for each edge, for edges that come without.
        vertices
            Ids that exist even where no edge has them.
        drop_duplicates
            Keep one of several edges with the same ends, with the smallest of their weights.
        drop_loops
            Drop edges from a vertex to itself; the vertex stays.
        format
            What a file holds, where its name does not say it.
        events
            Shown and measured there: the parts `graph/read` and `graph/build`.
        """
        events = events or Stream()
        rules = Rules(directed, drop_duplicates, drop_loops)
        # No name for what is read: `build` frees it as soon as it can.
        built = build(
            read_edges(edges, weights, vertices, format=format, events=events),
            rules,
            num_threads=num_cores(),
            events=events,
        )
        return cls(built.out, built.into, built.ids, directed, built.num_edges)

    @property
    def num_vertices(self) -> int:
        return self.out.num_rows

    @property
    def is_weighted(self) -> bool:
        return self.out.weights is not None

    def number_of(self, vertex: int | str) -> int:
        """The number of a vertex: its row."""
        return self.ids.number_of(vertex)

    def numbers_of(self, vertices: Any) -> NDArray[np.uint32]:
        return self.ids.numbers_of(vertices)

    def vertex_of(self, number: int) -> int | str:
        return self.ids.vertex_of(number)

    def degrees(self) -> Degrees:
        return Degrees(self.into.degrees(), self.out.degrees())

    def reversed(self) -> "Graph":
        """The same vertices and numbers, every edge turned around; no copy."""
        return Graph(self.into, self.out, self.ids, self.directed, self.num_edges)

    def undirected(self) -> "Graph":
        """The same vertices, numbers and edges without their directions.

        Two edges that went there and back are two parallel edges then. Kept, as its cuts are.
        """
        if not self.directed:
            return self
        if "undirected" not in self._readings:
            both = union(self.out, self.into, num_cores())
            freeze(both)
            self._read_as("undirected", both, self.num_edges)
        return self._readings["undirected"]

    def simple(self) -> "Graph":
        """The same vertices and numbers; edges without directions, copies, loops and weights. Kept."""
        if "simple" not in self._readings:
            around = neighbours(self.out, self.into, num_cores())
            rows = Csr(around.offsets, around.members, None)
            freeze(rows)
            self._read_as("simple", rows, rows.num_entries // 2)
        return self._readings["simple"]

    def _read_as(self, reading: str, rows: Csr, num_edges: int) -> None:
        self._readings[reading] = Graph(rows, rows, self.ids, directed=False, num_edges=num_edges)

    def cut(self, num_partitions: int, how: str = "ranges") -> Partitioned:
        """The graph in partitions: "ranges" (of numbers, balanced by degree), "hash" or "vertex_cut".

        Kept for the next program that wants the same.
        """
        key = (num_partitions, how)
        if key not in self._cuts:
            self._cuts[key] = cut(self.out, self.into, num_partitions, how)
        return self._cuts[key]

    def run(
        self, program: EdgeProgram | VertexProgram, options: RunOptions | None = None
    ) -> pa.Table:
        """Run a program to its end: the values it left at each vertex, as `table` gives them."""
        outcome = run_program(self, program, options or RunOptions())
        return outcome.graph.table(outcome.columns)

    def table(
        self,
        values: NDArray[Any] | Mapping[str, NDArray[Any]],
        valid: NDArray[np.bool_] | None = None,
    ) -> "pa.Table":
        """An Arrow table with the column `vertex`, ascending, and what each vertex has.

        Parameters
        ----------
        values
            By number: one array (the column is called `value`), or several with their names.
        valid
            By number: where it is False, values are NULL.
        """
        named = values if isinstance(values, Mapping) else {"value": values}
        missing = None if valid is None else ~valid[self.ids.numbers]
        columns = {"vertex": self.ids.as_arrow()}
        for name, array in named.items():
            columns[name] = pa.array(array[self.ids.numbers], mask=missing)
        return pa.table(columns)

    def fingerprint(self) -> str:
        """A hash of ids, edges and weights: equal for equal graphs. Computed once."""
        if not self._fingerprint:
            self._fingerprint.append(_fingerprint(self))
        return self._fingerprint[0]

    def __repr__(self) -> str:
        vertices = f"{self.num_vertices:,} {'vertex' if self.num_vertices == 1 else 'vertices'}"
        edges = f"{self.num_edges:,} {'edge' if self.num_edges == 1 else 'edges'}"
        kind = "directed" if self.directed else "undirected"
        return f"Graph({vertices}, {edges}, {kind}{', weighted' if self.is_weighted else ''})"


def _fingerprint(graph: Graph) -> str:
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
