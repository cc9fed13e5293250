"""Changes of a graph between supersteps, by the rules of Pregel.

The requests of all vertices are applied together, after the superstep in which they were made:
edges are removed first, then vertices (with all of their edges), then vertices are added, then
edges. Adding what exists already, or removing what does not exist, has no effect. Equal requests
count as one. If they give an edge different weights, the smallest weight is used, whichever
partition requested it.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from talka.errors import InvalidValueError, PayloadError, TalkaError
from talka.graph.graph import AnyGraph, GraphData
from talka.graph.programs.traits import ProgramTraits

KINDS: Final = ("remove_edge", "remove_vertex", "add_vertex", "add_edge")


class MutationRequests:
    """The changes of the graph that one partition requests."""

    def __init__(self) -> None:
        self._kinds: list[NDArray[np.uint8]] = []
        self._ends: tuple[list[Any], list[Any]] = ([], [])
        self._weights: list[NDArray[np.float64]] = []

    def add(
        self,
        kind: str,
        sources: Any,
        targets: Any,
        program: ProgramTraits,
        weights: ArrayLike | None = None,
    ) -> None:
        """Request changes of one of `KINDS`; for vertices, sources and targets are the same ids."""
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
        if len(ends[0]) == 0:
            return  # an empty list does not have the type of ids
        self._kinds.append(np.full(len(ends[0]), KINDS.index(kind), np.uint8))
        self._ends[0].append(ends[0])
        self._ends[1].append(ends[1])
        values = np.ones(len(ends[0])) if weights is None else np.asarray(weights, np.float64)
        self._weights.append(np.broadcast_to(values, len(ends[0])))

    def __len__(self) -> int:
        return sum(len(kinds) for kinds in self._kinds)

    def as_table(self) -> Any:
        """Return the requests as an Arrow table, to be sent to the driver."""
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


def mutated(graph: AnyGraph, tables: list[Any]) -> tuple[AnyGraph, NDArray[np.bool_]]:
    """Return the changed graph, and which old vertex numbers were removed.

    A removed vertex may exist in the changed graph again, as a new one.
    """
    requests = pa.concat_tables([table for table in tables if table.num_rows])
    kinds = requests["kind"].to_numpy()

    def chosen(kind: str) -> tuple[Any, Any, Any]:
        rows = requests.filter(pa.array(kinds == KINDS.index(kind)))
        return tuple(rows[name].combine_chunks() for name in ("source", "target", "weight"))

    sources, targets, weights = _edges_of(graph)
    keep = np.ones(len(sources), np.bool_)
    removed_ends = chosen("remove_edge")[:2]
    removed = _keys(graph, *(_known(graph, ids, keep=True) for ids in removed_ends))
    keep &= ~np.isin(_keys(graph, sources, targets), removed)
    is_removed = np.zeros(graph.num_vertices, np.bool_)
    is_removed[_known(graph, chosen("remove_vertex")[0])] = True
    keep &= ~(is_removed[sources] | is_removed[targets])

    names = _names_by_number(graph)
    kept = sources[keep], targets[keep]
    new_sources, new_targets, new_weights = _added(graph, kept, *chosen("add_edge"))
    vertices = [_take(names, np.flatnonzero(~is_removed)), chosen("add_vertex")[0]]
    edges = [
        _joined([_take(names, ends), new])
        for ends, new in zip(kept, (new_sources, new_targets), strict=True)
    ]
    all_weights = None
    if weights is not None:
        all_weights = np.concatenate([weights[keep], new_weights.to_numpy()])
    after = type(graph).from_edges(
        tuple(edges), all_weights, graph.directed, vertices=_joined(vertices)
    )
    return after, is_removed


def _added(
    graph: GraphData,
    kept: tuple[NDArray[Any], NDArray[Any]],
    sources: Any,
    targets: Any,
    weights: Any,
) -> tuple[Any, Any, Any]:
    """Return the requested edges that do not exist yet, each once, with the smallest weight."""
    codes = pa.concat_arrays([sources, targets]).dictionary_encode().indices.to_numpy()
    first, second = codes[: len(sources)], codes[len(sources) :]
    if not graph.directed:
        first, second = np.minimum(first, second), np.maximum(first, second)
    order = np.lexsort((weights.to_numpy(), second, first))
    ends = np.stack([first[order], second[order]])
    is_first = np.append(True, (ends[:, 1:] != ends[:, :-1]).any(axis=0))[: len(order)]
    # New ends have no number, so no existing edge has them.
    requested = _keys(graph, *(_known(graph, ids, keep=True) for ids in (sources, targets)))
    exists = np.isin(requested, _keys(graph, *kept))
    chosen = pa.array(order[is_first & ~exists[order]])
    return sources.take(chosen), targets.take(chosen), weights.take(chosen)


def as_arrow(graph: GraphData) -> list[Any]:
    """Return the edges by id, and all vertices, for a checkpoint."""
    sources, targets, weights = _edges_of(graph)
    names = _names_by_number(graph)
    columns = {"source": _take(names, sources), "target": _take(names, targets)}
    if weights is not None:
        columns["weight"] = pa.array(weights)
    return [pa.table(columns), names]


def from_arrow(saved: Sequence[Any], like: AnyGraph) -> AnyGraph:
    """Return the graph that `as_arrow` saved, of the class and direction of `like`."""
    edges, names = saved
    _check_graph(edges, names)
    ends = tuple(_joined([edges[name].combine_chunks()]) for name in ("source", "target"))
    weights = edges["weight"].to_numpy() if "weight" in edges.column_names else None
    try:
        return type(like).from_edges(ends, weights, like.directed, vertices=_joined([names]))
    except TalkaError as error:
        raise PayloadError(f"holds a graph that cannot be built ({error})") from error


def _check_graph(edges: Any, names: Any) -> None:
    """Raise PayloadError for anything that `as_arrow` cannot have returned."""
    if not isinstance(edges, pa.Table) or not isinstance(names, pa.Array):
        raise PayloadError("does not hold the edges and vertices of a graph")
    kind = names.type
    expected = {"source": kind, "target": kind, "weight": pa.float64()}
    is_known = pa.types.is_integer(kind) or kind in (pa.string(), pa.large_string())
    types = dict(zip(edges.column_names, edges.schema.types, strict=True))
    if not is_known or types not in (expected, {"source": kind, "target": kind}):
        raise PayloadError("holds a graph with columns other than source, target and weight")
    if names.null_count or any(column.null_count for column in edges.columns):
        raise PayloadError("holds a graph with ids that are NULL")


def _edges_of(graph: GraphData) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """Return sources and targets by vertex number, and weights, each edge once."""
    out = graph.out
    sources = np.repeat(np.arange(out.num_rows, dtype=np.uint32), out.degrees())
    targets, weights = out.columns, out.weights
    if not graph.directed:
        once = sources <= targets
        sources, targets = sources[once], targets[once]
        weights = None if weights is None else weights[once]
    return sources, targets, weights


def _keys(graph: GraphData, first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.int64]:
    """Return one number per edge that identifies its ends; -1 if an end has no number."""
    first, second = first.astype(np.int64), second.astype(np.int64)
    if not graph.directed:
        first, second = np.minimum(first, second), np.maximum(first, second)
    known = (first >= 0) & (second >= 0)
    return np.where(known, first * graph.num_vertices + second, -1)


def _known(graph: GraphData, ids: Any, *, keep: bool = False) -> NDArray[np.int64]:
    """Return the vertex numbers of the ids that exist; with `keep`, also -1 for the others."""
    ascending = graph.ids.as_arrow()
    places = pa.compute.index_in(ids.cast(ascending.type), value_set=ascending)
    is_known = places.is_valid().to_numpy(zero_copy_only=False)
    numbers = np.full(len(ids), -1, np.int64)
    numbers[is_known] = graph.ids.numbers[places.drop_null().to_numpy()]
    return numbers if keep else numbers[is_known]


def _names_by_number(graph: GraphData) -> Any:
    return graph.ids.as_arrow().take(pa.array(graph.ids.ranks))


def _take(names: Any, numbers: NDArray[Any]) -> Any:
    return names.take(pa.array(numbers))


def _joined(arrays: list[Any]) -> Any:
    first = arrays[0]
    joined = pa.concat_arrays([first, *(array.cast(first.type) for array in arrays[1:])])
    return joined.to_numpy() if pa.types.is_integer(joined.type) else joined
