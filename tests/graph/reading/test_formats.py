"""MatrixMarket, METIS, numbers of vertices and edges, and unsupported formats."""

import bz2
import io
import lzma

import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse

from talka.errors import EdgeFileError, TalkaError
from talka.events import Stream
from talka.events.base import Noted
from talka.graph import Graph
from tests.graph.building.twin import assert_same, build

BANNER = "%%MatrixMarket matrix coordinate"
SQUARE = [(1, 2), (2, 3), (3, 4), (4, 1), (1, 3)]  # vertices 1 to 4, with a diagonal
AS_METIS = "% a square with a diagonal\n4 5\n2 4 3\n1 3\n% and a comment\n2 4 1\n3 1\n"


def written(tmp_path, content, name="edges.txt"):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def lines(pairs):
    return "".join(f"{' '.join(map(str, pair))}\n" for pair in pairs)


def notes_of(path, **options):
    events, seen = Stream(), []
    with events.listening(seen.append):
        Graph.from_edges(path, events=events, **options)
    return [event.message for event in seen if isinstance(event, Noted)]


class TestMatrixMarket:
    @pytest.mark.parametrize("name", ["graph.mtx", "graph.txt", "graph"])
    def test_the_size_line_is_not_an_edge_whatever_the_name(self, tmp_path, name):
        content = f"{BANNER} pattern general\n% made by hand\n5 5 5\n{lines(SQUARE)}"
        graph = Graph.from_edges(written(tmp_path, content, name))
        assert_same(graph, build(SQUARE, vertices=range(1, 6)))

    @pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
    @pytest.mark.parametrize("field", ["pattern", "real", "integer"])
    def test_it_is_the_matrix_that_scipy_reads(self, tmp_path, symmetry, field):
        entries = [(2, 1, 3), (3, 1, 5), (4, 3, 2)] + [(2, 2, 7)] * (symmetry != "skew-symmetric")
        if field == "pattern":
            entries = [entry[:2] for entry in entries]
        content = f"{BANNER} {field} {symmetry}\n5 5 {len(entries)}\n{lines(entries)}"
        path = written(tmp_path, content, "graph.mtx")
        matrix = scipy.sparse.coo_array(scipy.io.mmread(path))
        pairs = list(zip((matrix.row + 1).tolist(), (matrix.col + 1).tolist(), strict=True))
        weights = None if field == "pattern" else matrix.data.tolist()
        assert_same(Graph.from_edges(path), build(pairs, weights, vertices=range(1, 6)))

    def test_an_undirected_graph_has_a_symmetric_entry_once(self, tmp_path):
        content = f"{BANNER} pattern symmetric\n4 4 3\n2 1\n3 1\n4 4\n"
        graph = Graph.from_edges(written(tmp_path, content, "graph.mtx"), directed=False)
        assert (graph.num_vertices, graph.num_edges) == (4, 3)

    @pytest.mark.parametrize(
        "content, problem",
        [
            ("1 2\n", "line 1: it does not begin with the banner"),
            (f"{BANNER} complex general\n1 1 0\n", "'matrix coordinate complex general' is not"),
            ("%%MatrixMarket matrix array real general\n2 2\n1\n", "is not supported"),
            (f"{BANNER} pattern general\n3 4 1\n1 2\n", "line 2: a matrix of 3 x 4 is not a graph"),
            (f"{BANNER} pattern general\n% c\n3 3\n1 2\n", "line 3: .*three whole numbers"),
            (f"{BANNER} pattern general\n", "line with the size of the matrix is missing"),
            (f"{BANNER} pattern general\n3 3 2\n1 2\n", "1 entries, but its size line declares 2"),
            (f"{BANNER} pattern general\n3 3 1\n0 2\n", "indices from 0 to 0"),
            (f"{BANNER} pattern general\n3 3 1\n1 4\n", "indices from 4 to 4"),
            (f"{BANNER} real general\n3 3 1\n1 2\n", "line 3: '1 2' has 2 fields"),
        ],
    )
    def test_what_does_not_fit_is_an_error(self, tmp_path, content, problem):
        with pytest.raises(EdgeFileError, match=problem):
            Graph.from_edges(written(tmp_path, content, "graph.mtx"))


class TestMetis:
    @pytest.mark.parametrize("name", ["square.metis", "square.graph"])
    def test_line_v_has_the_neighbours_of_vertex_v(self, tmp_path, name):
        path = written(tmp_path, AS_METIS, name)
        both = [*SQUARE, *((target, source) for source, target in SQUARE)]
        assert_same(Graph.from_edges(path), build(both))
        once = build(SQUARE, directed=False)
        assert_same(Graph.from_edges(path, directed=False), once)

    def test_an_empty_line_is_a_vertex_without_neighbours(self, tmp_path):
        for content in ("4 1\n\n3\n2\n\n", "4 1\r\n\r\n3\r\n2\r\n", "4 1\n\n3\n2"):
            graph = Graph.from_edges(written(tmp_path, content, "x.metis"), directed=False)
            assert_same(graph, build([(2, 3)], vertices=[1, 2, 3, 4], directed=False))

    @pytest.mark.parametrize(
        "header, rows, weights",
        [
            ("3 2 1", ["2 5", "1 5 3 7", "2 7"], [5.0, 5.0, 7.0, 7.0]),
            ("3 2 001", ["2 5", "1 5 3 7", "2 7"], [5.0, 5.0, 7.0, 7.0]),
            ("3 2 10", ["9 2", "9 1 3", "9 2"], None),
            ("3 2 010 2", ["8 9 2", "8 9 1 3", "8 9 2"], None),
            ("3 2 100", ["4 2", "4 1 3", "4 2"], None),
            ("3 2 111 2", ["4 8 9 2 5", "4 8 9 1 5 3 7", "4 8 9 2 7"], [5.0, 5.0, 7.0, 7.0]),
        ],
    )
    def test_sizes_and_weights_are_where_the_format_says(self, tmp_path, header, rows, weights):
        path = written(tmp_path, "\n".join([header, *rows]), "x.metis")
        assert_same(Graph.from_edges(path), build([(1, 2), (2, 1), (2, 3), (3, 2)], weights))

    def test_lines_keep_their_vertices_over_blocks(self, tmp_path, monkeypatch):
        from talka.graph.reading import blocks

        graph = nx.gnm_random_graph(300, 500, seed=1)
        rows = [" ".join(str(other + 1) for other in graph[vertex]) for vertex in range(300)]
        for place in range(0, 300, 7):
            rows[place] = f"% {place}\n{rows[place]}"
        path = written(tmp_path, "\n".join(["300 500", *rows]) + "\n", "x.metis")
        monkeypatch.setattr(blocks, "_PIECE_BYTES", 50)
        monkeypatch.setattr(
            blocks.blocks, "__kwdefaults__", {**blocks.blocks.__kwdefaults__, "block_bytes": 100}
        )
        pairs = [(source + 1, target + 1) for source, target in graph.edges]
        twin = build(pairs, vertices=range(1, 301), directed=False)
        assert_same(Graph.from_edges(path, directed=False), twin)

    @pytest.mark.parametrize(
        "content, problem",
        [
            ("", "it is empty"),
            ("3\n1\n", "not `n m"),
            ("2 1 2\n2\n1\n", "not `n m"),
            ("3 2\n2\n1 3\n", "3 neighbours, but the first line declares 2 edges"),
            ("2 1\n2\n1\n1\n", "3 lines after the first, but the first line declares 2 vertices"),
            ("2 1\n3\n1\n", "neighbours from 1 to 3, but the first line declares 2 vertices"),
            ("2 1 1\n2 5\n1\n", "the line of vertex 2 has 1 fields"),
            ("2 1\n% c\n2\nx\n", "line 4: 'x' is not a whole number"),
        ],
    )
    def test_what_does_not_fit_is_an_error(self, tmp_path, content, problem):
        with pytest.raises(EdgeFileError, match=problem):
            Graph.from_edges(written(tmp_path, content, "x.metis"))

    def test_it_is_not_read_as_lists_of_neighbours(self, tmp_path):
        path = written(tmp_path, AS_METIS.replace("% and a comment\n", ""), "x.adj")
        with pytest.raises(EdgeFileError, match=r'it is METIS.*format="metis"'):
            Graph.from_edges(path)
        assert Graph.from_edges(path, format="metis").num_edges == 10


class TestNumbersOfVerticesAndEdges:
    """A first line of 4 vertices and 5 edges: there is no vertex 5, so it is not an edge."""

    def test_they_are_left_out_where_they_cannot_be_an_edge(self, tmp_path):
        for pairs in (SQUARE, [(source - 1, target - 1) for source, target in SQUARE]):
            path = written(tmp_path, "# c\n4 5\n" + lines(pairs))
            assert_same(Graph.from_edges(path), build(pairs))
            assert notes_of(path) == [
                "line 2, '4 5', has the numbers of vertices and edges and is not an edge"
            ]

    def test_a_line_that_only_looks_like_them_is_an_edge(self, tmp_path):
        for first in ("4 6", "3 5", "4 4"):
            path = written(tmp_path, f"{first}\n{lines(SQUARE)}")
            assert Graph.from_edges(path).num_edges == 6, first
            assert notes_of(path) == []

    def test_they_are_edges_if_somebody_says_so(self, tmp_path):
        path = written(tmp_path, "4 5\n" + lines(SQUARE))
        assert Graph.from_edges(path, format="edges").num_edges == 6

    def test_a_line_that_may_be_either_is_refused_with_what_to_do(self, tmp_path):
        tree = "4 3\n" + lines([(1, 2), (2, 3), (3, 4)])
        path = written(tmp_path, tree)
        with pytest.raises(EdgeFileError, match=r"line 1: '4 3' may be an edge, or.*with #"):
            Graph.from_edges(path)
        assert Graph.from_edges(path, format="edges").num_edges == 4
        assert Graph.from_edges(written(tmp_path, f"# {tree}")).num_edges == 3

    def test_a_matrix_without_its_banner_is_refused(self, tmp_path):
        weighted = [(*pair, 0.5) for pair in SQUARE]
        path = written(tmp_path, f"4 4 5\n{lines(weighted)}")
        with pytest.raises(EdgeFileError, match="line 1: '4 4 5' may be an edge"):
            Graph.from_edges(path)

    def test_before_weighted_edges_they_have_a_field_less(self, tmp_path):
        weighted = lines([(*pair, 0.5) for pair in SQUARE])
        graph = Graph.from_edges(written(tmp_path, f"4 5\n{weighted}"))
        assert_same(graph, build(SQUARE, [0.5] * 5))
        with pytest.raises(EdgeFileError, match="line 1: '4 6' has 2 fields, but the next"):
            Graph.from_edges(written(tmp_path, f"4 6\n{weighted}"))


@pytest.mark.parametrize(
    "given, problem",
    [
        ("https://example.org/edges.txt", "it is an address, not a file. Fetch it first: curl"),
        ("s3://bucket/edges.csv", "it is an address, not a file. Fetch it first: aws s3"),
        (
            "edges.txt.bz2",
            "it is compressed by bzip2, which is not supported. Decompress it: bzcat",
        ),
        ("edges.csv.xz", "it is compressed by xz"),
        ("graph.graphml", "it is GraphML, which is not supported. Convert it"),
        ("graph.graphml.gz", "it is GraphML"),
        ("graph.xml", "it is XML"),
    ],
)
def test_what_is_not_read_is_refused_by_its_name(given, problem):
    with pytest.raises(EdgeFileError, match=problem):
        Graph.from_edges(given)


def _graphml():
    file = io.BytesIO()
    nx.write_graphml(nx.path_graph(3), file)
    return file.getvalue()


@pytest.mark.parametrize(
    "content, problem",
    [
        (bz2.compress(b"1 2\n"), "compressed by bzip2, not text"),
        (lzma.compress(b"1 2\n"), "compressed by xz, not text"),
        (_graphml(), "it is XML, not text"),
        (b"PAR1" + bytes(90), "it is Parquet, not text. Use the format parquet"),
    ],
    ids=["bz2", "xz", "graphml", "parquet"],
)
def test_what_is_not_text_is_refused_by_its_first_bytes(tmp_path, content, problem):
    with pytest.raises(EdgeFileError, match=problem):
        Graph.from_edges(written(tmp_path, content))


@pytest.mark.parametrize("file_format", ["auto", "csv", "adjacency", "metis", "mtx"])
def test_a_line_without_end_is_refused_in_little_memory(tmp_path, file_format, monkeypatch):
    """Read from a sparse file, and from a device that never ends."""
    from talka.graph.reading import blocks, metis, text

    for module in (text, metis):
        monkeypatch.setattr(module, "MAX_LONG_LINE_BYTES", 4 * blocks.MAX_LINE_BYTES)
    endless = tmp_path / "zeros"
    with endless.open("wb") as file:
        file.truncate(1 << 36)
    read = []
    pieces = blocks._pieces
    monkeypatch.setattr(blocks, "_pieces", lambda path, _: pieces(path, read.append))
    for path in (endless, "/dev/zero"):
        read.clear()
        with pytest.raises(TalkaError, match=r"has a line of more than|it is a device"):
            Graph.from_edges(path, format=file_format)
        assert sum(read) <= 6 * blocks.MAX_LINE_BYTES


def test_many_neighbours_fit_on_a_line(tmp_path):
    content = "1 " + " ".join(str(vertex) for vertex in range(2, 300_000)) + "\n"
    assert len(content) > 1 << 20
    graph = Graph.from_edges(written(tmp_path, content, "star.adj"))
    assert int(np.max(graph.degrees().outgoing)) == 299_998
