"""Core numbers against networkx, for a whole graph and with fixed values of mirrors."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.graph.kernels.cores import cores, peel
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
    edges=any_edges(max_vertices=10, max_edges=40),
    fixed=st.lists(st.integers(0, 6), min_size=10, max_size=10),
    num_own=st.integers(0, 10),
)
@settings(deadline=None, max_examples=200)
def test_vertices_in_no_row_hold_their_values(edges, fixed, num_own):
    """The reference starts with degrees and takes h-indices of neighbours until none changes."""
    around = edges.neighbours()
    own = range(min(num_own, edges.num_vertices))
    values = [len(around[v]) if v in own else fixed[v] for v in range(edges.num_vertices)]
    rows = [sorted(v for v in members if v in own) for members in around]
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.uint32)
    members = np.array([v for row in rows for v in row], np.uint32)
    found = peel(offsets, members, np.array(values, np.int64))
    while True:
        after = [
            h_index([values[u] for u in around[v]]) if v in own else values[v]
            for v in range(edges.num_vertices)
        ]
        if after == values:
            break
        values = after
    assert found.tolist() == values


def h_index(values):
    return max(h for h in range(len(values) + 1) if sum(value >= h for value in values) >= h)
