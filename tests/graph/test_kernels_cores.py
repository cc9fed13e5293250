"""Core numbers against networkx, by peeling and by h-indices."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.graph.kernels.cores import cores, h_indices
from talka.graph.kernels.simple import neighbours
from tests.graph.edges import any_edges, hubs


def peeled(edges):
    simple = nx.Graph((a, b) for a, b in edges.pairs if a != b)
    simple.add_nodes_from(range(edges.num_vertices))
    numbers = nx.core_number(simple)
    return [numbers[vertex] for vertex in range(edges.num_vertices)]


@given(edges=any_edges(max_vertices=12, max_edges=60), num_threads=st.integers(1, 3))
@settings(deadline=None, max_examples=200)
def test_equal_those_of_networkx_on_any_graph(edges, num_threads):
    assert cores(*edges.sides(), num_threads).tolist() == peeled(edges)


@pytest.mark.parametrize("directed", [True, False])
def test_equal_those_of_networkx_on_hubs(directed):
    edges = hubs(directed=directed)
    assert cores(*edges.sides(), 2).tolist() == peeled(edges)


@given(
    values=st.lists(st.lists(st.integers(0, 12), max_size=10), max_size=6),
    num_threads=st.integers(1, 3),
)
@settings(deadline=None, max_examples=200)
def test_an_h_index_is_the_largest_h_with_h_entries_of_h_or_more(values, num_threads):
    offsets = np.cumsum([0, *map(len, values)]).astype(np.uint32)
    flat = np.array([value for row in values for value in row], np.uint32)
    columns = np.arange(len(flat), dtype=np.uint32)
    expected = [
        max(h for h in range(len(row) + 1) if sum(value >= h for value in row) >= h)
        for row in values
    ]
    assert h_indices(offsets, columns, flat, num_threads).tolist() == expected


@pytest.mark.parametrize("num_threads", [1, 2, 3])
def test_h_indices_of_neighbours_settle_at_core_numbers(num_threads):
    sides = hubs(scale=9).sides()
    around = neighbours(*sides, num_threads)
    values = around.lengths().astype(np.uint32)
    num_rounds = 0
    while True:
        following = h_indices(around.offsets, around.members, values, num_threads)
        if np.array_equal(following, values):
            break
        values, num_rounds = following, num_rounds + 1
    assert values.tolist() == cores(*sides, num_threads).tolist()
    assert num_rounds > 2
