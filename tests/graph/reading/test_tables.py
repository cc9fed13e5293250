"""Edges from tables, matrices and arrays, and input that is not a graph."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.errors import EdgeFileError, GraphError, GraphTooLargeError
from talka.events import Stream
from talka.events.base import Noted
from talka.graph import Graph
from talka.graph.building import memory
from tests.graph.building.twin import assert_same, build

PAIRS = [(4, 2), (2, 4), (7, 4), (4, 4)]
WEIGHTS = [0.5, 1.5, 2.5, 3.5]
TABLE = pa.table(
    {
        "weight": WEIGHTS,
        "dst": [target for _, target in PAIRS],
        "note": ["a"] * 4,
        "src": [source for source, _ in PAIRS],
    }
)
WRITERS = {
    "edges.csv": pyarrow.csv.write_csv,
    "edges.parquet": pyarrow.parquet.write_table,
    "edges.arrow": lambda table, path: pyarrow.feather.write_feather(
        table, path, compression="uncompressed"
    ),
    "edges.feather": pyarrow.feather.write_feather,
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("ids", [pa.int64(), pa.int32(), pa.uint64(), pa.string()], ids=str)
def test_columns_are_found_by_their_names_in_every_file(tmp_path, name, ids):
    table = TABLE
    for column in ("src", "dst"):
        place = table.column_names.index(column)
        values = table.column(column).cast(ids)
        if ids == pa.string():
            values = pa.array([f"v {value}" for value in values.to_pylist()])
        table = table.set_column(place, column, values)
    WRITERS[name](table, tmp_path / name)
    pairs = list(zip(*(table.column(end).to_pylist() for end in ("src", "dst")), strict=True))
    assert_same(Graph.from_edges(tmp_path / name), build(pairs, WEIGHTS))
    assert_same(Graph.from_edges(table), build(pairs, WEIGHTS))


@pytest.mark.parametrize("third, is_weighted", [([1, 2], True), (["x", "y"], False)])
def test_without_names_the_first_columns_count(third, is_weighted):
    table = pa.table({"a": [1, 2], "b": [2, 3], "c": third})
    graph = Graph.from_edges(table)
    assert_same(graph, build([(1, 2), (2, 3)], [1.0, 2.0] if is_weighted else None))


def test_dictionaries_and_chunks_are_columns_too():
    words = pa.chunked_array([["b", "a"], ["b"]]).dictionary_encode()
    table = pa.table({"source": words, "target": pa.array(["a", "c", "c"], pa.large_string())})
    assert_same(Graph.from_edges(table), build([("b", "a"), ("a", "c"), ("b", "c")]))


@pytest.mark.parametrize(
    "content, edges",
    [
        ("1,2\n3,4\n", [(1, 2), (3, 4)]),
        ("a,b\n1,2\n\n3,4\n", [(1, 2), (3, 4)]),
        ("# made by hand\nsource,target\n1,2\n", [(1, 2)]),
        ('"x, y",z\n"a ""b""",z\n', [("x, y", "z"), ('a "b"', "z")]),
        ("target,source\nb,a\n", [("a", "b")]),
        (f"0,{2**64 - 1}\n", [(0, 2**64 - 1)]),
        ("source,target\n", []),
        ("1,2\r3,4\r", [(1, 2), (3, 4)]),
        (",u,v\n0,1,2\n1,3,4\n", [(1, 2), (3, 4)]),
        (",u,v\n0,a,b\n", [("a", "b")]),
        ("Unnamed: 0,person,friend\n0,1,2\n", [(1, 2)]),
        (",source,target\n0,1,2\n", [(1, 2)]),
        ("source,target,time\n1,2,99\n", [(1, 2)]),
        ("user,item,timestamp\n1,2,99\n", [(1, 2)]),
        ("", []),
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_csv_with_headers_comments_quotes_and_empty_lines(tmp_path, content, edges, pack):
    path = tmp_path / ("edges.csv" if pack is bytes else "edges.csv.gz")
    path.write_bytes(pack(content.encode()))
    assert_same(Graph.from_edges(path), build(edges))


@pytest.mark.parametrize("name", WRITERS)
def test_a_column_becomes_the_weight_by_its_name_where_the_ends_have_theirs(tmp_path, name):
    table = pa.table({"src": [1, 2], "dst": [2, 3], "time": [7, 8], "cost": [0.5, 1.5]})
    for columns, weights in ((table.drop_columns("cost"), None), (table, [0.5, 1.5])):
        WRITERS[name](columns, tmp_path / name)
        assert_same(Graph.from_edges(tmp_path / name), build([(1, 2), (2, 3)], weights))
        assert_same(Graph.from_edges(columns), build([(1, 2), (2, 3)], weights))


@pytest.mark.parametrize("name", WRITERS)
def test_the_columns_that_were_taken_are_noted(tmp_path, name):
    WRITERS[name](TABLE, tmp_path / name)
    events, seen = Stream(), []
    with events.listening(seen.append):
        Graph.from_edges(tmp_path / name, events=events)
    note = "source is column 'src', target is column 'dst', weight is column 'weight'"
    assert Noted("graph/read", f"{note} (not used: 'note')") in seen


def test_two_columns_of_one_name_are_an_error(tmp_path):
    (tmp_path / "edges.csv").write_text("vertex,vertex\n1,2\n")
    with pytest.raises(EdgeFileError, match="line 1: two columns are named 'vertex'"):
        Graph.from_edges(tmp_path / "edges.csv")


def test_tsv_is_cut_at_tabs_only(tmp_path):
    path = tmp_path / "edges.tsv"
    path.write_text("from\tto\tweight\nNew York\tRio\t2\n")
    assert_same(Graph.from_edges(path), build([("New York", "Rio")], [2.0]))


@pytest.mark.parametrize(
    "row, problem",
    [
        ("3", "Expected 3 columns, got 1"),
        ("3,x,1", "invalid value 'x'"),
        ("3,,1", "invalid value ''"),
        ("3,4,heavy", "invalid value 'heavy'"),
        (f"3,{2**65},1", f"invalid value '{2**65}'"),
    ],
)
def test_a_broken_row_of_csv_is_named_with_its_line(tmp_path, row, problem):
    path = tmp_path / "edges.csv"
    path.write_text(f"# c\nsource,target,weight\n1,2,0.5\n\n{row}\n")
    with pytest.raises(EdgeFileError, match=problem) as raised:
        Graph.from_edges(path)
    assert raised.value.line == 5


def test_csv_of_one_column_makes_no_edges(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("\n1\n2\n")
    with pytest.raises(EdgeFileError, match=r"edges\.csv, line 2: '1' is one field"):
        Graph.from_edges(path)


@pytest.mark.parametrize("name", ["edges.parquet", "edges.arrow"])
def test_a_file_that_is_no_table_is_named(tmp_path, name):
    (tmp_path / name).write_text("1 2\n" * 9)
    with pytest.raises(EdgeFileError, match=f"{name}: it cannot be read"):
        Graph.from_edges(tmp_path / name)


@pytest.mark.parametrize("name", ["edges.parquet", "edges.arrow"])
def test_a_table_that_makes_no_graph_is_named(tmp_path, name):
    WRITERS[name](pa.table({"a": [1.5], "b": [2.5]}), tmp_path / name)
    with pytest.raises(EdgeFileError, match=rf"{name}: no graph from sources \(column 'a'\)"):
        Graph.from_edges(tmp_path / name)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), unique=True), st.booleans())
def test_a_sparse_matrix_has_a_vertex_for_every_row(pairs, weighted):
    weights = [float(at + 2) for at in range(len(pairs))] if weighted and pairs else None
    rows, columns = [row for row, _ in pairs], [column for _, column in pairs]
    values = weights or np.ones(len(pairs))
    for kind in (scipy.sparse.coo_array, scipy.sparse.csr_matrix):
        graph = Graph.from_edges(kind((values, (rows, columns)), shape=(6, 6)))
        assert_same(graph, build(pairs, weights, vertices=range(6)))


def test_weights_may_be_given_beside_edges_that_have_none():
    assert_same(Graph.from_edges(([1, 2], [2, 3]), [5, 6]), build([(1, 2), (2, 3)], [5.0, 6.0]))


@pytest.mark.parametrize("num_edges", range(5))
@pytest.mark.parametrize("edge", [tuple, list])
@pytest.mark.parametrize("whole", [list, iter])
def test_a_list_of_pairs_is_a_list_of_edges_however_many_there_are(num_edges, edge, whole):
    pairs = [(1, 2), (3, 4), (2, 9), (7, 1)][:num_edges]
    graph = Graph.from_edges(whole([edge(pair) for pair in pairs]))
    assert_same(graph, build(pairs))


def test_an_edge_may_have_a_weight():
    graph = Graph.from_edges([("a", "b", 0.5), ("b", "c", 2)])
    assert_same(graph, build([("a", "b"), ("b", "c")], [0.5, 2.0]))


@pytest.mark.parametrize("make", [list, np.array, pa.array, range])
def test_a_tuple_of_two_columns_is_sources_and_targets(make):
    sources, targets = (make(2), make(2, 4)) if make is range else (make([0, 1]), make([2, 3]))
    assert_same(Graph.from_edges((sources, targets)), build([(0, 2), (1, 3)]))


@pytest.mark.parametrize(
    "edges, options, problem",
    [
        (([1, 2], [3]), {}, "2 sources and 1 targets"),
        (([1.5], [2.5]), {}, "sources of type float64"),
        (([True], [False]), {}, "sources of type bool"),
        (([[1, 2]], [[2, 3]]), {}, "sources of 2 dimensions"),
        (([1, "a"], [2, 3]), {}, "sources of mixed or unknown types"),
        (([2**70], [1]), {}, "sources of mixed or unknown types"),
        ((["a"], [1]), {}, "sources that are strings and targets that are whole numbers"),
        (([1], [2]), {"vertices": ["a"]}, "vertices that are strings and sources and targets"),
        (([-1], [2]), {"vertices": [2**63]}, "negative ids beside ids of unsigned 64 bits"),
        (([1], [2]), {"weights": [1.0, 2.0]}, r"1 edges and weights of shape \(2,\)"),
        (([1, 2], [2, 3]), {"weights": [1.0, np.nan]}, r"NaN or NULL \(edge 1\)"),
        (([1], [2]), {"weights": ["a"]}, "weights that are not numbers"),
        (TABLE, {"weights": WEIGHTS}, "two columns of weights"),
        (pa.table({"a": [1]}), {}, r"a table with the columns \['a'\]"),
        (pa.table({"a": [1, None], "b": [1, 2]}), {}, r"column 'a'\) with NULL in row 1"),
        (scipy.sparse.coo_array((2, 3)), {}, r"a matrix of shape \(2, 3\)"),
        (np.zeros((5, 2), int), {}, r"ndarray of shape \(5, 2\)"),
        (7, {}, "no graph from int"),
        (((1, 2), (3, 4)), {}, "may be two edges or a pair"),
        (((1, 2, 0.5), [3, 4, 0.5]), {}, "may be two edges or a pair"),
        ([(1, 2), (3, 4, 5.0)], {}, r"an edge of 3 values \(edge 1\)"),
        ([[1, 2, 3, 4], [5, 6, 7, 8]], {}, r"an edge of 4 values \(edge 0\)"),
        ([np.array([1, 2]), np.array([3, 4])], {}, r"an edge that is ndarray \(edge 0\)"),
        (["ab", "cd"], {}, r"an edge that is str \(edge 0\)"),
    ],
)
def test_what_makes_no_graph_is_an_error_that_says_why(edges, options, problem):
    with pytest.raises(GraphError, match=problem):
        Graph.from_edges(edges, **options)


def test_a_graph_that_would_not_fit_is_refused_before_memory_is_taken(monkeypatch):
    monkeypatch.setattr(memory, "available_memory_bytes", lambda: 1_000_000)
    sources = np.broadcast_to(np.int64(1), 1_000_000)
    with pytest.raises(GraphTooLargeError, match=r"1\.00 M edges needs about 24\.0 MB.*1\.00 MB"):
        Graph.from_edges((sources, sources))
