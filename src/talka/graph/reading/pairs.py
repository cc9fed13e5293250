"""Edges from Python sequences: a list of edges, or a tuple (sources, targets).

The type decides, never the number of edges: a list is a list of edges, a tuple of two is a pair of
columns. Only a tuple of two short tuples could be either; it is rejected.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from talka.errors import GraphError
from talka.graph.reading.base import Edges
from talka.graph.reading.columns import as_ids, as_weights

_EDGE_LENGTHS = (2, 3)
_ADVICE = (
    "An edge is a tuple or list (source, target) or (source, target, weight), and all edges have "
    "the same length. Give two columns as a tuple: (sources, targets)."
)


def edges_from_sequence(edges: Iterable[Any]) -> Edges:
    """Return the edges of a list, tuple or iterator.

    >>> edges_from_sequence([(1, 2), (3, 4)]).targets.tolist()
    [2, 4]
    >>> edges_from_sequence(([1, 2], [3, 4])).targets.tolist()
    [3, 4]
    """
    if isinstance(edges, tuple) and len(edges) == 2:
        _check_are_columns(edges)
        return Edges(as_ids(edges[0], "sources"), as_ids(edges[1], "targets"))
    return _from_list([*edges])


def _check_are_columns(pair: Sequence[Any]) -> None:
    """Raise GraphError for a tuple of two that could also be two edges."""
    could_be_edges = all(_is_edge(column) for column in pair)
    if could_be_edges and any(isinstance(column, tuple) for column in pair):
        raise GraphError(
            f"{pair!r}, which may be two edges or a pair (sources, targets)",
            "Give edges as a list, [(1, 2), (3, 4)], or columns as lists, ([1, 3], [2, 4]).",
        )


def _is_edge(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) in _EDGE_LENGTHS


def _from_list(edges: list[Any]) -> Edges:
    num_fields = len(edges[0]) if edges and _is_edge(edges[0]) else 2
    for place, edge in enumerate(edges):
        if not isinstance(edge, tuple | list):
            raise GraphError(f"an edge that is {type(edge).__name__} (edge {place})", _ADVICE)
        if len(edge) != num_fields:
            problem = f"an edge of {len(edge)} values (edge {place})"
            raise GraphError(problem, _ADVICE)
    columns = [list(column) for column in zip(*edges, strict=True)] or [[], []]
    weights = as_weights(columns[2], len(edges)) if num_fields == 3 else None
    return Edges(as_ids(columns[0], "sources"), as_ids(columns[1], "targets"), weights)
