"""Changes of a graph between supersteps, by Pregel's rules.

Wishes of all vertices are carried out together, after the superstep in which they were made:
edges are removed first, then vertices (with all edges at them), then vertices are added, then edges.
A wish that is there already, or that names what is not there, changes nothing; two wishes for the
same thing are one.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from talka.errors import InvalidValueError

if TYPE_CHECKING:
    from talka.graph.graph import Graph
    from talka.graph.vertex_program import VertexProgram

KINDS: Final = ("remove_edge", "remove_vertex", "add_vertex", "add_edge")


class Wishes:
    """What one partition wants changed."""

    def __init__(self) -> None:
        self._kinds: list[NDArray[np.uint8]] = []
        self._ends: tuple[list[Any], list[Any]] = ([], [])
        self._weights: list[NDArray[np.float64]] = []

    def add(
        self,
        kind: str,
        sources: Any,
        targets: Any,
        program: "VertexProgram",
        weights: ArrayLike | None = None,
    ) -> None:
        if not program.mutates:
            raise InvalidValueError(
                "mutates", program.mutates, "True: the program changes the graph"
            )
        ends = [
            end if isinstance(end, pa.Array) else pa.array(np.asarray(end))
            for end in (sources, targets)
        ]
        if len(ends[0]) != len(ends[1]):
            raise InvalidValueError("targets", len(ends[1]), f"as many as sources, {len(ends[0])}")
        self._kinds.append(np.full(len(ends[0]), KINDS.index(kind), np.uint8))
        self._ends[0].append(ends[0])
        self._ends[1].append(ends[1])
        given = np.ones(len(ends[0])) if weights is None else np.asarray(weights, np.float64)
        self._weights.append(np.broadcast_to(given, len(ends[0])))

    def __len__(self) -> int:
        return sum(len(kinds) for kinds in self._kinds)

    def as_table(self) -> Any:
        """As Arrow, fit to travel."""
        if not len(self):
            return pa.table({"kind": pa.array([], pa.uint8())})
        return pa.table(
            {
                "kind": np.concatenate(self._kinds),
                "source": pa.concat_arrays(self._ends[0]),
                "target": pa.concat_arrays(self._ends[1]),
                "weight": np.concatenate(self._weights),
            }
        )


def mutated(graph: "Graph", tables: list[Any]) -> tuple["Graph", NDArray[np.bool_]]:
    """The graph after all wishes, and which old numbers were removed (some may be back, as new)."""
    from talka.graph.graph import Graph

    wishes = pa.concat_tables([table for table in tables if table.num_rows])
    kinds = wishes["kind"].to_numpy()

    def chosen(kind: str) -> tuple[Any, Any, Any]:
        rows = wishes.filter(pa.array(kinds == KINDS.index(kind)))
        return tuple(rows[name].combine_chunks() for name in ("source", "target", "weight"))

    sources, targets, weights = _edges_of(graph)
    keep = np.ones(len(sources), np.bool_)
    gone_sources, gone_targets, _ = chosen("remove_edge")
    keep &= ~_are_among(graph, sources, targets, gone_sources, gone_targets)
    is_gone = np.zeros(graph.num_vertices, np.bool_)
    is_gone[_known(graph, chosen("remove_vertex")[0])] = True
    keep &= ~(is_gone[sources] | is_gone[targets])

    names = _names_by_number(graph)
    new_sources, new_targets, new_weights = chosen("add_edge")
    vertices = [_take(names, np.flatnonzero(~is_gone)), chosen("add_vertex")[0]]
    edges = [
        _joined([_take(names, ends[keep]), new])
        for ends, new in ((sources, new_sources), (targets, new_targets))
    ]
    all_weights = None
    if weights is not None:
        all_weights = np.concatenate([weights[keep], new_weights.to_numpy()])
    after = Graph.from_edges(tuple(edges), all_weights, graph.directed, vertices=_joined(vertices))
    return after, is_gone


def as_arrow(graph: "Graph") -> list[Any]:
    """Edges by id, and all vertices, for a checkpoint."""
    sources, targets, weights = _edges_of(graph)
    names = _names_by_number(graph)
    columns = {"source": _take(names, sources), "target": _take(names, targets)}
    if weights is not None:
        columns["weight"] = pa.array(weights)
    return [pa.table(columns), names]


def from_arrow(saved: Sequence[Any], like: "Graph") -> "Graph":
    """The graph that `as_arrow` was given; `like` says whether it is directed."""
    from talka.graph.graph import Graph

    edges, names = saved
    ends = tuple(_joined([edges[name].combine_chunks()]) for name in ("source", "target"))
    weights = edges["weight"].to_numpy() if "weight" in edges.column_names else None
    return Graph.from_edges(ends, weights, like.directed, vertices=_joined([names]))


def _edges_of(graph: "Graph") -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """Ends by number, each edge once."""
    out = graph.out
    sources = np.repeat(np.arange(out.num_rows, dtype=np.uint32), out.degrees())
    targets, weights = out.columns, out.weights
    if not graph.directed:
        once = sources <= targets
        sources, targets = sources[once], targets[once]
        weights = None if weights is None else weights[once]
    return sources, targets, weights


def _are_among(
    graph: "Graph", sources: NDArray[Any], targets: NDArray[Any], gone: Any, gone_to: Any
) -> NDArray[np.bool_]:
    """Whether each edge is one of those that shall go."""
    known = [_known(graph, gone, keep=True), _known(graph, gone_to, keep=True)]
    both = (known[0] >= 0) & (known[1] >= 0)
    first, second = known[0][both], known[1][both]
    if not graph.directed:
        first, second = np.minimum(first, second), np.maximum(first, second)
    size = np.int64(graph.num_vertices)
    return np.isin(sources.astype(np.int64) * size + targets, first * size + second)


def _known(graph: "Graph", ids: Any, *, keep: bool = False) -> NDArray[np.int64]:
    """Numbers of those ids that exist; with `keep`, -1 for the others."""
    ascending = graph.ids.as_arrow()
    places = pa.compute.index_in(ids.cast(ascending.type), value_set=ascending)
    found = places.is_valid().to_numpy(zero_copy_only=False)
    numbers = np.full(len(ids), -1, np.int64)
    numbers[found] = graph.ids.numbers[places.drop_null().to_numpy()]
    return numbers if keep else numbers[found]


def _names_by_number(graph: "Graph") -> Any:
    return graph.ids.as_arrow().take(pa.array(graph.ids.ranks))


def _take(names: Any, numbers: NDArray[Any]) -> Any:
    return names.take(pa.array(numbers))


def _joined(arrays: list[Any]) -> Any:
    first = arrays[0]
    joined = pa.concat_arrays([first, *(array.cast(first.type) for array in arrays[1:])])
    return joined if pa.types.is_string(joined.type) else joined.to_numpy()
