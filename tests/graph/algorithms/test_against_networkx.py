"""Every algorithm on random graphs, for all partitionings, against networkx or a reference."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.graph.algorithms import twins
from tests.graph.algorithms.graphs import ALL_CUTS, EDGE_CUTS, Case, by_vertex, cases, options_for

any_case = settings(
    deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@any_case
@given(case=cases(), cut=st.sampled_from(ALL_CUTS), data=st.data())
def test_bfs_has_the_levels_and_the_parents_of_smallest_number(embedded, case, cut, data):
    sources = data.draw(st.lists(st.sampled_from(case.vertices), min_size=1, max_size=3))
    graph, peer = case.graph(), case.peer()
    table = graph.bfs(sources, with_parents=True, options=options_for(cut, embedded))
    levels = twins.levels(peer, sources)
    assert by_vertex(table) == levels
    into = peer.reverse() if peer.is_directed() else peer
    for vertex, parent in by_vertex(table, "parent").items():
        above = [v for v in into[vertex] if levels[vertex] and levels[v] == levels[vertex] - 1]
        assert parent == (min(above, key=graph.number_of) if above else None)


@any_case
@given(case=cases(), cut=st.sampled_from(ALL_CUTS), data=st.data())
def test_sssp_has_the_smallest_sums(embedded, case, cut, data):
    source = data.draw(st.sampled_from(case.vertices))
    table = case.graph().sssp(source, options=options_for(cut, embedded))
    assert by_vertex(table) == twins.distances(case.peer(), [source])


@any_case
@given(
    case=cases(),
    cut=st.sampled_from(ALL_CUTS),
    damping=st.sampled_from([0.0, 0.5, 0.85, 1.0]),
    num_supersteps=st.integers(0, 6),
)
def test_pagerank_is_the_power_iteration(embedded, case, cut, damping, num_supersteps):
    options = options_for(cut, embedded)
    found = by_vertex(case.graph().pagerank(damping, num_supersteps, options=options))
    assert found == pytest.approx(twins.pagerank(case.peer(), damping, num_supersteps))
    assert sum(found.values()) == pytest.approx(1)


@any_case
@given(case=cases(weighted=False), cut=st.sampled_from(ALL_CUTS), data=st.data())
def test_pagerank_to_a_tolerance_is_networkx_pagerank_also_personalised(embedded, case, cut, data):
    weight = st.integers(1, 5)
    sources = data.draw(st.none() | st.dictionaries(st.sampled_from(case.vertices), weight))
    peer, options = case.peer(), options_for(cut, embedded)
    table = case.graph().pagerank(
        0.5, 60, tolerance=1e-10, sources=sources or None, options=options
    )
    expected = nx.pagerank(peer, 0.5, personalization=sources or None, tol=1e-13)
    assert by_vertex(table) == pytest.approx(expected, abs=1e-9)


@any_case
@given(case=cases(), cut=st.sampled_from(EDGE_CUTS))
def test_components_are_named_by_their_smallest_id(embedded, case, cut):
    peer = case.peer()
    groups = (nx.weakly_connected_components if case.directed else nx.connected_components)(peer)
    table = case.graph().components(options=options_for(cut, embedded))
    assert by_vertex(table) == twins.named_groups(groups)


@any_case
@given(case=cases(), cut=st.sampled_from(ALL_CUTS))
def test_strong_components_are_named_by_their_smallest_id(embedded, case, cut):
    peer = case.peer()
    groups = (nx.strongly_connected_components if case.directed else nx.connected_components)(peer)
    table = case.graph().strong_components(options=options_for(cut, embedded))
    assert by_vertex(table) == twins.named_groups(groups)


@pytest.mark.parametrize("cut", ALL_CUTS)
def test_cycles_behind_a_greater_one_take_more_rounds(embedded, cut):
    """The first cycle has the hubs, so its colour spreads to all that it reaches."""
    pairs = [(v + a, v + b) for v in (0, 10, 20, 30) for a, b in ((1, 2), (2, 3), (3, 1))]
    pairs += [(1, 11), (12, 21), (23, 32)] + 3 * [(1, 2), (2, 3)] + [(11, 12)]
    graph = Case(pairs, None, [], directed=True).graph()
    table = graph.strong_components(options=options_for(cut, embedded))
    assert by_vertex(table) == {v + a: v + 1 for v in (0, 10, 20, 30) for a in (1, 2, 3)}


@any_case
@given(case=cases(), cut=st.sampled_from(EDGE_CUTS), num_supersteps=st.integers(0, 5))
def test_communities_take_the_label_of_most_neighbours(embedded, case, cut, num_supersteps):
    table = case.graph().communities(num_supersteps, options=options_for(cut, embedded))
    assert by_vertex(table) == twins.communities(case.peer(), num_supersteps)


@any_case
@given(case=cases(), cut=st.sampled_from(EDGE_CUTS))
def test_clustering_counts_edges_between_neighbours(embedded, case, cut):
    table = case.graph().clustering(options=options_for(cut, embedded))
    assert by_vertex(table) == pytest.approx(twins.clustering(case.peer()))


@pytest.mark.parametrize("cut", EDGE_CUTS)
@pytest.mark.parametrize("directed", [True, False])
def test_clustering_counts_directions_but_no_copies(embedded, cut, directed):
    pairs = [*3 * [(1, 2)], (2, 1), *2 * [(2, 3)], (1, 3), (3, 4), (4, 3), (4, 1), (4, 4), (5, 1)]
    case = Case(pairs, None, [], directed)
    table = case.graph().clustering(options=options_for(cut, embedded))
    assert by_vertex(table) == pytest.approx(twins.clustering(case.peer()))


@any_case
@given(case=cases(), cut=st.sampled_from(EDGE_CUTS))
def test_triangles_are_those_of_networkx(embedded, case, cut):
    graph, options = case.graph(), options_for(cut, embedded)
    expected = nx.triangles(case.simple_peer())
    assert by_vertex(graph.triangles(options=options)) == expected
    assert graph.num_triangles(options=options) == sum(expected.values()) // 3


@any_case
@given(case=cases(), cut=st.sampled_from(EDGE_CUTS))
def test_cores_are_those_of_networkx(embedded, case, cut):
    table = case.graph().cores(options=options_for(cut, embedded))
    assert by_vertex(table) == nx.core_number(case.simple_peer())


@any_case
@given(case=cases())
def test_degree_statistics_count_by_hand(case):
    found, peer = case.graph().degree_statistics(), case.peer()
    ends = [
        pair if case.directed else tuple(sorted(pair, key=twins.order_of)) for pair in case.pairs
    ]
    assert found["num_vertices"] == len(case.vertices)
    assert found["num_edges"] == len(case.pairs)
    assert found["num_loops"] == sum(source == target for source, target in case.pairs)
    assert found["num_duplicates"] == len(ends) - len(set(ends))
    assert found["num_isolated"] == sum(degree == 0 for _, degree in peer.degree())
    out = [len(twins.edges_out(peer, vertex)) for vertex in peer]
    into = [len(twins.edges_out(peer.reverse() if case.directed else peer, v)) for v in peer]
    for side, degrees in (("in", into), ("out", out)):
        spread = found[side]
        assert (spread["min"], spread["max"]) == (min(degrees), max(degrees))
        assert spread["mean"] == pytest.approx(sum(degrees) / len(degrees))
        assert spread["median"] == np.median(degrees)
        for percentile, degree in spread["percentiles"].items():
            assert degree in degrees
            assert sum(other <= degree for other in degrees) >= int(percentile) / 100 * len(degrees)
            assert sum(other < degree for other in degrees) <= int(percentile) / 100 * len(degrees)
