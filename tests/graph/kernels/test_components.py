"""Components against a plain search, with any number of threads, and atomic operations."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.compiled import compiled
from talka.graph.kernels.components import (
    compare_and_swap,
    components,
    flatten,
    forest,
    smallest_in_trees,
    unite,
    unite_rows,
)
from talka.graph.kernels.threads import over_ranges
from talka.graph.partitions.cutting import WAYS, cut
from tests.graph.edges import Edges, any_edges, hubs


def searched(edges):
    """Return the smallest vertex that can be reached from each, by depth-first search."""
    around = edges.neighbours()
    smallest = [None] * edges.num_vertices
    for start in range(edges.num_vertices):
        waiting = [start] if smallest[start] is None else []
        while waiting:
            vertex = waiting.pop()
            if smallest[vertex] is None:
                smallest[vertex] = start
                waiting += around[vertex]
    return smallest


@given(edges=any_edges(max_vertices=20, max_edges=25), num_threads=st.integers(1, 3))
@settings(deadline=None, max_examples=300)
def test_equal_a_search_on_any_graph(edges, num_threads):
    assert components(*edges.sides(), num_threads).tolist() == searched(edges)


def scattered(seed, *, directed):
    """Return a graph with one large component and thousands of small ones."""
    random = np.random.default_rng(seed)
    pairs = random.integers(0, 30_000, (20_000, 2)).tolist()
    return Edges(30_000, [tuple(pair) for pair in pairs], directed).by_degree()


@pytest.mark.parametrize("num_threads", [1, 2, 3, 8])
@pytest.mark.parametrize("directed", [True, False])
def test_equal_a_search_where_threads_meet(directed, num_threads):
    edges = scattered(3, directed=directed)
    sides, expected = edges.sides(), searched(edges)
    assert len(set(expected)) > 10_000
    for _ in range(10):
        assert components(*sides, num_threads).tolist() == expected


def test_a_path_in_the_worst_order_is_one_component():
    """Neighbours have distant numbers, and no two vertices have the same first neighbour."""
    order = np.random.default_rng(1).permutation(5000).tolist()
    edges = Edges(5000, list(itertools.pairwise(order)))
    assert not components(*edges.sides(), 3).any()


def test_the_largest_tree_is_met_from_outside_only():
    """All edges start in the largest tree, so vertices outside of it have them only in `into`."""
    fan = [(0, target) for target in range(1, 1000)]
    assert not components(*Edges(1000, fan).sides(), 2).any()


@given(edges=any_edges(), cut_at=st.integers(0, 40))
@settings(deadline=None)
def test_pairs_may_be_united_in_pieces(edges, cut_at):
    ends = np.array(edges.pairs, np.uint32).reshape(-1, 2)
    parents = forest(edges.num_vertices)
    for piece in (ends[:cut_at], ends[cut_at:]):
        unite(parents, np.ascontiguousarray(piece[:, 0]), np.ascontiguousarray(piece[:, 1]))
        flatten(parents)
    assert parents.tolist() == searched(edges)


@given(edges=any_edges(), num_partitions=st.integers(1, 4), how=st.sampled_from(sorted(WAYS)))
@settings(deadline=None)
def test_partitions_unite_their_edges_and_then_their_labels(edges, num_partitions, how):
    parents = forest(edges.num_vertices)
    for part in cut(*edges.sides(), num_partitions, how).partitions:
        numbers = np.concatenate([part.target_numbers, part.source_mirrors])
        behind = np.arange(len(part.target_numbers), len(numbers))
        places = np.concatenate([np.arange(part.num_own), behind]).astype(np.uint32)
        trees = forest(len(numbers))
        unite_rows(trees, part.out, places, 2)
        flatten(trees)
        unite(parents, numbers, smallest_in_trees(trees, numbers))
    flatten(parents)
    assert parents.tolist() == searched(edges)


def test_smallest_in_trees_looks_at_numbers_not_at_places():
    trees = np.array([0, 0, 2, 2, 4], np.uint32)
    numbers = np.array([9, 4, 1, 7, 3], np.uint32)
    assert smallest_in_trees(trees, numbers).tolist() == [4, 4, 1, 1, 3]


@compiled
def add_up(start, stop, total):
    for _ in range(start, stop):
        current, expected = total[0], np.uint32(0)
        while current != expected:
            expected = current
            current = compare_and_swap(total, np.uint64(0), expected, np.uint32(expected + 1))


def test_no_change_is_lost_when_threads_swap_the_same_number():
    total = np.ones(1, np.uint32)
    over_ranges(add_up, np.arange(0, 500_000, 100_000), total)
    assert total[0] == 1 + 400_000


@compiled
def claim(start, stop, owners):
    won = 0
    for place in range(len(owners)):
        won += compare_and_swap(owners, np.uint64(place), np.uint32(0), np.uint32(stop)) == 0
    return won


def test_a_place_is_claimed_by_one_thread_only():
    owners = np.zeros(1_000_000, np.uint32)
    won = over_ranges(claim, np.arange(4), owners)
    assert sum(won) == len(owners)
    assert np.bincount(owners, minlength=4).tolist() == [0, *won]


def test_a_graph_of_hubs_has_one_large_component():
    edges = hubs()
    assert components(*edges.sides(), 2).tolist() == searched(edges)
