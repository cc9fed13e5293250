"""Real graphs: published counts, and the same results for all partitionings."""

import pytest

from talka.graph import Graph
from tests.graph.algorithms.graphs import options_for
from tests.graph.edges import data_file


@pytest.fixture(scope="module")
def facebook():
    return Graph.from_edges(data_file("facebook_combined.txt.gz"), directed=False)


@pytest.fixture(scope="module")
def epinions():
    return Graph.from_edges(data_file("soc-Epinions1.txt.gz"))


@pytest.mark.parametrize("cut", [(1, "ranges"), (2, "ranges"), (5, "hash")])
def test_facebook_has_1612010_triangles(embedded, facebook, cut):
    assert facebook.num_triangles(options=options_for(cut, embedded)) == 1_612_010


@pytest.mark.parametrize("cut", [(1, "ranges"), (2, "hash")])
def test_epinions_read_as_undirected_has_1624481_triangles(embedded, epinions, cut):
    assert epinions.num_triangles(options=options_for(cut, embedded)) == 1_624_481


@pytest.mark.parametrize(
    "algorithm",
    ["components", "strong_components", "communities", "clustering", "triangles", "cores"],
)
def test_epinions_is_the_same_in_one_piece_and_in_several(embedded, epinions, algorithm):
    whole, *cut = (
        getattr(epinions, algorithm)(options=options_for(cut, embedded))
        for cut in [(1, "ranges"), (2, "hash"), (5, "ranges")]
    )
    assert all(table.equals(whole) for table in cut)


@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
def test_paths_in_epinions_are_the_same_in_one_piece_and_in_several(embedded, epinions, algorithm):
    whole, *cut = (
        getattr(epinions, algorithm)(0, options=options_for(cut, embedded))
        for cut in [(1, "ranges"), (2, "hash"), (5, "ranges"), (2, "vertex_cut")]
    )
    assert all(table.equals(whole) for table in cut)
    assert 0 < whole["value"].null_count < epinions.num_vertices


def test_strong_components_of_epinions_have_a_giant_of_32223(embedded, epinions):
    """SNAP's page of the graph gives 32,223 vertices for the largest one."""
    table = epinions.strong_components(options=options_for((1, "ranges"), embedded))
    sizes = [row["counts"] for row in table["value"].value_counts().to_pylist()]
    assert max(sizes) == 32_223
