"""The data and the variants of a graph; test_building.py tests how it is built."""

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.errors import UnknownVertexError
from talka.graph import Graph
from talka.graph.algorithms.answers import by_rank
from tests.graph.building.twin import build, rows_of

EDGES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=30)


def graph_of(edges, **options):
    return Graph.from_edges(([s for s, _ in edges], [t for _, t in edges]), **options)


def test_vertices_are_numbered_by_descending_degree_then_by_id():
    graph = graph_of([(9, 5), (9, 7), (9, 3), (5, 3)])
    assert [graph.vertex_of(number) for number in range(4)] == [9, 3, 5, 7]
    assert graph.numbers_of([3, 5, 7, 9]).tolist() == [1, 2, 3, 0]
    assert graph.number_of(7) == 3
    with pytest.raises(UnknownVertexError, match="whole numbers from 3 to 9"):
        graph.number_of(4)


def test_degrees_are_by_number():
    incoming, outgoing = graph_of([(9, 5), (9, 9), (9, 3)]).degrees()
    assert incoming.tolist() == [1, 1, 1]
    assert outgoing.tolist() == [3, 0, 0]


def test_reversed_turns_edges_around_without_a_copy():
    graph = graph_of([(1, 2), (3, 2)])
    turned = graph.reversed()
    assert turned.out is graph.into
    assert turned.into is graph.out
    assert turned.num_edges == 2


@settings(deadline=None)
@given(EDGES, st.booleans())
def test_undirected_keeps_every_edge_in_both_of_its_rows(edges, weighted):
    weights = [float(at) for at in range(len(edges))] if weighted else None
    graph = graph_of(edges, weights=weights).undirected()
    twin = build(edges, weights, directed=False)
    ids = list(twin.numbers)

    def named(rows, number_of):
        """Replace numbers by ids: numbers may differ, because an undirected loop counts once."""
        name = {number: vertex for vertex, number in number_of.items()}
        return {
            (name[row], name[column], weight)
            for row, entries in enumerate(rows)
            for column, weight in entries
        }, sorted(
            (name[row], name[column]) for row, entries in enumerate(rows) for column, _ in entries
        )

    number_of = {vertex: graph.number_of(vertex) for vertex in ids}
    assert named(rows_of(graph.out), number_of) == named(twin.out, twin.numbers)
    assert all(row == sorted(row, key=lambda entry: entry[0]) for row in rows_of(graph.out))
    assert graph.num_edges == len(edges)
    assert graph.into is graph.out
    assert not graph.directed


def test_parallel_edges_lie_in_the_same_order_at_both_ends():
    graph = graph_of([(1, 2), (2, 1), (1, 2)], weights=[5.0, 7.0, 6.0]).undirected()
    assert graph.out.weights.tolist() == [5.0, 6.0, 7.0, 5.0, 6.0, 7.0]


def test_variants_are_cached_and_have_the_ids_of_their_graph():
    graph = graph_of([(10, 30), (30, 10), (30, 30), (30, 20)])
    assert graph.undirected() is graph.undirected()
    assert graph.simple() is graph.simple()
    assert (graph.undirected().num_edges, graph.simple().num_edges) == (4, 2)
    assert by_rank(graph).simple().vertex_of(0) == 2  # not 30, as in the cached variant of `graph`
    assert graph.simple().vertex_of(0) == 30


def test_an_undirected_graph_is_its_own_undirected_one():
    graph = graph_of([(1, 2)], directed=False)
    assert graph.undirected() is graph


def test_a_table_ascends_by_vertex_and_has_null_where_nothing_is_valid():
    graph = graph_of([(9, 5), (9, 3)])
    table = graph.table(np.array([0.5, 1.5, 2.5]), np.array([True, False, True]))
    assert table.to_pydict() == {"vertex": [3, 5, 9], "value": [None, 2.5, 0.5]}


def test_a_table_of_strings_may_have_several_values():
    graph = graph_of([("b", "a"), ("b", "c")])
    table = graph.table({"depth": np.array([0, 1, 2]), "is_hub": np.array([True, False, False])})
    assert table.to_pydict() == {
        "vertex": ["a", "b", "c"],
        "depth": [1, 0, 2],
        "is_hub": [False, True, False],
    }


def test_nothing_in_a_graph_can_be_changed():
    graph = graph_of([(1, 2)], weights=[1.0])
    for array in (*graph.out, *graph.into, *graph.ids):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        graph.directed = False


@pytest.mark.parametrize(
    "other",
    [
        {"edges": [(1, 2), (2, 1)]},
        {"edges": [(1, 2), (3, 2)]},
        {"edges": [(1, 2), (2, 4)]},
        {"edges": [("1", "2"), ("2", "3")]},
        {"edges": [(1, 2), (2, 3)], "directed": False},
        {"edges": [(1, 2), (2, 3)], "weights": [1.0, 2.0]},
        {"edges": [(1, 2), (2, 3)], "vertices": [4]},
    ],
    ids=repr,
)
def test_fingerprints_of_different_graphs_differ(other):
    graph = graph_of([(1, 2), (2, 3)])
    same = graph_of([(2, 3), (1, 2)])
    assert graph.fingerprint() == same.fingerprint() == graph.fingerprint()
    assert graph_of(**other).fingerprint() != graph.fingerprint()


def test_repr_has_the_size_and_kind_of_a_graph():
    assert repr(graph_of([])) == "Graph(0 vertices, 0 edges, directed)"
    graph = graph_of([(1, 1)], weights=[2.0], directed=False)
    assert repr(graph) == "Graph(1 vertex, 1 edge, undirected, weighted)"


def test_variants_and_copies_of_a_graph_have_its_class():
    graph = graph_of([(10, 20), (20, 10), (20, 20)])
    variants = [graph.reversed(), graph.undirected(), graph.simple(), by_rank(graph)]
    copy = pickle.loads(pickle.dumps(graph))
    assert {type(variant) for variant in (*variants, copy)} == {Graph}
    assert copy.fingerprint() == graph.fingerprint()
    assert copy.bfs(10)["value"].to_pylist() == [0, 1]


def test_an_empty_graph_answers_everything():
    for graph in (graph_of([]), graph_of([], directed=False), graph_of([]).undirected()):
        assert graph.degrees().incoming.tolist() == []
        assert graph.table(np.empty(0)).num_rows == 0
        assert graph.reversed().fingerprint()


def test_vertices_without_edges_exist():
    graph = Graph.from_edges(([], []), vertices=["b", "a"])
    assert graph.ids.as_arrow().to_pylist() == ["a", "b"]
    assert graph.degrees().outgoing.tolist() == [0, 0]
