"""Lists of neighbours, and the pairs of files of LDBC."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.errors import EdgeFileError, UnknownNameError
from talka.graph import Graph
from tests.graph.building.twin import assert_same, build

IDS = st.integers(0, 20)


@settings(deadline=None)
@given(st.lists(st.lists(IDS, min_size=1, max_size=6), max_size=12), st.booleans())
def test_every_line_is_a_vertex_and_its_neighbours(tmp_path_factory, rows, as_strings):
    mark = "v" if as_strings else ""
    named = [[f"{mark}{id_}" if as_strings else id_ for id_ in row] for row in rows]
    path = tmp_path_factory.mktemp("lists") / "list.adj"
    path.write_text("# c\n" + "".join(f"{' '.join(map(str, row))}\n" for row in named))
    pairs = [(row[0], other) for row in named for other in row[1:]]
    alone = [row[0] for row in named]
    assert_same(Graph.from_edges(path), build(pairs, vertices=alone))
    once = build(pairs, vertices=alone, directed=False, drop_duplicates=True)
    assert_same(Graph.from_edges(path, directed=False), once)


def test_any_name_can_be_said_to_hold_neighbours(tmp_path):
    path = tmp_path / "lists.txt"
    path.write_text("1 2 3 4\n2 3\n5\n")
    assert Graph.from_edges(path, format="adjacency").num_edges == 4
    with pytest.raises(EdgeFileError, match='line 2: .*format="adjacency"'):
        Graph.from_edges(path)
    with pytest.raises(UnknownNameError, match="Did you mean 'adjacency'"):
        Graph.from_edges(path, format="adjacent")


def test_a_broken_id_among_neighbours_is_named_with_its_line(tmp_path):
    path = tmp_path / "x.adj"
    path.write_text("1 2 3\n\n4 5 x 6\n7\n")
    with pytest.raises(EdgeFileError, match="'x' is not a whole number") as raised:
        Graph.from_edges(path)
    assert raised.value.line == 3


def test_ldbc_vertices_come_from_the_file_beside(tmp_path):
    (tmp_path / "x.e").write_text("1 2 0.5\n2 3 1.5\n")
    (tmp_path / "x.v").write_text("1\n2\n3\n9\n")
    graph = Graph.from_edges(tmp_path / "x.e", vertices=[8])
    assert graph.ids.ascending.tolist() == [1, 2, 3, 8, 9]
    assert graph.is_weighted


def test_ldbc_edges_without_their_vertices_are_an_error(tmp_path):
    (tmp_path / "x.e").write_text("1 2\n")
    with pytest.raises(EdgeFileError, match=r"no x\.v beside it"):
        Graph.from_edges(tmp_path / "x.e")
    assert Graph.from_edges(tmp_path / "x.e", format="edges").num_edges == 1
