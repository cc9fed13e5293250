"""Triangles and clustering against their definitions; real graphs against published counts."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.graph.kernels.simple import (
    Neighbours,
    backward_neighbours,
    forward_neighbours,
    neighbours,
)
from talka.graph.kernels.triangles import clustering, count_closing, triangles
from tests.graph.edges import any_edges, hubs, ldbc_case, snap_sides

given_graphs = given(edges=any_edges(), num_threads=st.integers(1, 3))
checked = settings(deadline=None, max_examples=200)


def row_lists(lists):
    return [row.tolist() for row in np.split(lists.members, lists.offsets[1:-1])]


@given_graphs
@checked
def test_neighbours_are_listed_once_in_order_and_without_the_vertex_itself(edges, num_threads):
    if not edges.num_vertices:
        return
    around = [sorted(row) for row in edges.neighbours()]
    sides = edges.sides()
    assert row_lists(neighbours(*sides, num_threads)) == around
    below = [[u for u in row if u < v] for v, row in enumerate(around)]
    assert row_lists(forward_neighbours(*sides, num_threads)) == below
    above = [[u for u in row if u > v] for v, row in enumerate(around)]
    assert row_lists(backward_neighbours(*sides, num_threads)) == above


@given_graphs
@checked
def test_ways_are_the_number_of_directions_of_an_edge(edges, num_threads):
    pairs = set(edges.pairs) if edges.directed else set()
    lists = neighbours(*edges.sides(), num_threads)
    rows = np.repeat(np.arange(edges.num_vertices), lists.lengths()).tolist()
    for v, u, ways in zip(rows, lists.members.tolist(), lists.ways.tolist(), strict=True):
        assert ways == (((v, u) in pairs) + ((u, v) in pairs) if edges.directed else 1)


def defined_triangles(edges):
    around = edges.neighbours()
    return [
        sum(b in around[a] for a, b in itertools.combinations(around[v], 2))
        for v in range(edges.num_vertices)
    ]


def defined_clustering(edges):
    """LDBC's definition, word by word."""
    arcs = {(source, target) for source, target, _ in edges.stored()}
    coefficients = []
    for around in edges.neighbours():
        between = sum((a, b) in arcs for a, b in itertools.permutations(around, 2))
        possible = len(around) * (len(around) - 1)
        coefficients.append(between / possible if possible else 0.0)
    return coefficients


@given_graphs
@checked
def test_triangles_are_those_of_the_definition(edges, num_threads):
    assert triangles(*edges.sides(), num_threads).tolist() == defined_triangles(edges)


@given_graphs
@checked
def test_clustering_is_that_of_the_definition(edges, num_threads):
    assert clustering(*edges.sides(), num_threads).tolist() == defined_clustering(edges)


@pytest.mark.parametrize("directed", [True, False])
def test_triangles_of_hubs_equal_those_of_networkx(directed):
    edges = hubs(directed=directed)
    simple = nx.Graph((a, b) for a, b in edges.pairs if a != b)
    simple.add_nodes_from(range(edges.num_vertices))
    expected = nx.triangles(simple)
    counts = triangles(*edges.sides(), 3)
    assert counts.tolist() == [expected[vertex] for vertex in range(edges.num_vertices)]
    assert counts.sum() > 100_000


@given(edges=any_edges(), num_partitions=st.integers(1, 4), with_ways=st.booleans())
@checked
def test_counts_of_partitions_add_up_to_those_of_the_graph(edges, num_partitions, with_ways):
    whole = forward_neighbours(*edges.sides(), 1)
    if not with_ways:
        whole.ways.fill(1)
    vertices = np.arange(edges.num_vertices, dtype=np.uint32)
    owned = [vertices[index::num_partitions] for index in range(num_partitions)]
    lists = [some_rows(whole, own) for own in owned]
    sums = np.zeros(edges.num_vertices, np.int64)
    for here, there in itertools.product(range(num_partitions), repeat=2):
        asked = (owned[there], lists[there])
        sums += count_closing(owned[here], lists[here], *asked, edges.num_vertices)
    if with_ways and edges.directed:
        around = edges.neighbours()
        shares = zip(defined_clustering(edges), around, strict=True)
        expected = [round(share * len(n) * (len(n) - 1)) for share, n in shares]
    else:
        expected = defined_triangles(edges)
    assert sums.tolist() == expected


def some_rows(lists, rows):
    picked = [np.arange(lists.offsets[row], lists.offsets[row + 1]) for row in rows]
    entries = np.concatenate([np.empty(0, np.int64), *picked]).astype(np.int64)
    offsets = np.cumsum([0, *map(len, picked)]).astype(np.uint32)
    return Neighbours(offsets, lists.members[entries], lists.ways[entries])


@pytest.mark.parametrize("folder", ["lcc", "example"])
@pytest.mark.parametrize("directed", [True, False])
def test_clustering_of_ldbc_graphs_is_as_published(folder, directed):
    _, edges, expected = ldbc_case(folder, "LCC", directed=directed)
    np.testing.assert_allclose(clustering(*edges.sides(), 2), expected, rtol=1e-4)


@pytest.mark.parametrize(
    "name, num_triangles",
    [("facebook_combined.txt.gz", 1_612_010), ("soc-Epinions1.txt.gz", 1_624_481)],
)
def test_triangles_of_real_graphs_are_as_published(name, num_triangles):
    assert triangles(*snap_sides(name), 2).sum() == 3 * num_triangles
