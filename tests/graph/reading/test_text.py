"""Edges from text: separators, comments, headers and sizes, and the lines that errors name."""

import gzip

import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from talka.errors import EdgeFileError, GraphTooLargeError
from talka.events import Stream
from talka.events.base import Measured, PhaseAdvanced, PhaseStarted
from talka.graph import Graph
from talka.graph.building import memory
from talka.graph.reading import blocks, text
from talka.units import format_bytes
from tests.graph.building.twin import assert_same, build

NUMBERS = st.integers(-(2**63), 2**63 - 1)
WORDS = st.text(st.characters(codec="utf-8", exclude_characters=" \t,\r\v\f\n#%"), min_size=1)
NO_EDGES = ["", "\n", "  \t\r\n", "# 1 2", "% 1 2\n", " #1 2\n\n", "# vertices: 5 edges: 6\n"]


def written(tmp_path, content, name="edges.txt"):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@st.composite
def edge_texts(draw, ids):
    """Draw a text, and the edges and weights in it."""
    pairs = draw(st.lists(st.tuples(ids, ids), max_size=25))
    weights = draw(
        st.one_of(
            st.none(),
            st.lists(st.floats(allow_nan=False), min_size=len(pairs), max_size=len(pairs)),
        )
    )
    gap = st.sampled_from([" ", "\t", ",", ", ", "  \t", " , "])
    end = st.sampled_from(["\n", "\r\n", "\r", " \n", "\n\n", "\n# 1 2 3\n", "\r%\r"])
    lines = [draw(st.sampled_from(["", "\n", "# 1 2\n", " %\n"]))]
    for at, (source, target) in enumerate(pairs):
        fields = [str(source), str(target)]
        if weights is not None:
            fields.append(repr(weights[at]))
        line = draw(st.sampled_from(["", " "])) + draw(gap).join(fields)
        lines.append(line + draw(end))
    whole = "".join(lines)
    if draw(st.booleans()):
        whole = whole.rstrip("\n")  # the last line may have no line end
    return whole, pairs, weights


@settings(deadline=None, max_examples=150)
@given(edge_texts(NUMBERS), st.sampled_from([1, 7, 1 << 21]))
def test_whole_numbers_are_read_in_any_dress(tmp_path_factory, drawn, block_bytes):
    content, pairs, weights = drawn
    path = written(tmp_path_factory.mktemp("edges"), content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_PIECE_BYTES", min(block_bytes, 1 << 20))
        usual = blocks.blocks.__kwdefaults__
        patch.setattr(blocks.blocks, "__kwdefaults__", {**usual, "block_bytes": block_bytes})
        graph = Graph.from_edges(path, format="edges")
    assert_same(graph, build(pairs, weights))
    assert graph.is_weighted == (weights is not None and len(pairs) > 0)


@settings(deadline=None, max_examples=60)
@given(edge_texts(WORDS.filter(lambda word: not word.strip("-").isdigit())))
@example(('" : 0.0\n', [('"', ":")], [0.0]))
@example(('"" a 0.0\n', [('""', "a")], [0.0]))
def test_strings_are_read_in_any_dress(tmp_path_factory, drawn):
    content, pairs, weights = drawn
    graph = Graph.from_edges(written(tmp_path_factory.mktemp("edges"), content))
    assert_same(graph, build(pairs, weights))


@pytest.mark.parametrize("content", NO_EDGES)
def test_a_file_without_edges_is_a_graph_without_vertices(tmp_path, content):
    assert Graph.from_edges(written(tmp_path, content)).num_vertices == 0


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_packed_files_read_as_plain_ones(tmp_path, pack):
    content = "".join(f"{at % 977} {at % 31}\n" for at in range(200_000)).encode()
    plain = Graph.from_edges(written(tmp_path, content))
    packed = Graph.from_edges(written(tmp_path, pack(content), "edges.txt.packed"))
    assert packed.fingerprint() == plain.fingerprint()
    assert plain.num_edges == 200_000


@pytest.mark.parametrize(
    "header", ["source target", "Source,Target,Weight", "FromNodeId\tToNodeId", "x y"]
)
def test_a_header_is_no_edge(tmp_path, header):
    assert Graph.from_edges(written(tmp_path, f"# c\n{header}\n1 2\n2 3\n")).num_edges == 2


def test_names_of_columns_are_a_header_before_strings_too(tmp_path):
    graph = Graph.from_edges(written(tmp_path, "src dst\nanna bert\n"))
    assert graph.ids.as_arrow().to_pylist() == ["anna", "bert"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_may_end_in_any_way_and_are_counted(tmp_path, end):
    content = end.join(["# c", "1 2", "2 3", "3 1", ""])
    assert_same(Graph.from_edges(written(tmp_path, content)), build([(1, 2), (2, 3), (3, 1)]))
    with pytest.raises(EdgeFileError) as raised:
        Graph.from_edges(written(tmp_path, f"{content}4 x{end}"))
    assert raised.value.line == 5


@pytest.mark.parametrize(
    "content, pairs, weights",
    [
        ("target source\n1 2\n3 4\n", [(2, 1), (4, 3)], None),
        ("weight source target\n5 1 2\n6 3 4\n", [(1, 2), (3, 4)], [5.0, 6.0]),
        ("source target time\n1 2 99\n3 4 98\n", [(1, 2), (3, 4)], None),
        ("x y timestamp\n1 2 99\n3 4 98\n", [(1, 2), (3, 4)], None),
        ("x y z\n1 2 99\n3 4 98\n", [(1, 2), (3, 4)], [99.0, 98.0]),
        ("x y z\n1 2 red\n3 4 blue\n", [(1, 2), (3, 4)], None),
        (",u,v\n0,1,2\n1,3,4\n", [(1, 2), (3, 4)], None),
        ("\t1 2\n\t3 4\n", [(1, 2), (3, 4)], None),
        (",u,v\n0,anna,bert\n1,bert,carl\n", [("anna", "bert"), ("bert", "carl")], None),
    ],
)
def test_a_header_says_which_columns_are_what(tmp_path, content, pairs, weights):
    assert_same(Graph.from_edges(written(tmp_path, content)), build(pairs, weights))


def test_a_header_with_fewer_names_than_fields_is_an_error(tmp_path):
    with pytest.raises(EdgeFileError, match="has 3 fields, but the header has 2 names") as raised:
        Graph.from_edges(written(tmp_path, "# c\nsource target\n0 1 2\n"))
    assert raised.value.line == 3


def test_a_byte_order_mark_is_no_part_of_an_id(tmp_path):
    assert Graph.from_edges(written(tmp_path, "\ufeff1 2\n")).number_of(1) == 0


def test_fields_after_the_weight_are_not_read(tmp_path):
    graph = Graph.from_edges(written(tmp_path, "1 2 0.5 1999 x\n2 3 1.5 2001 y\n"))
    assert sorted(graph.out.weights.tolist()) == [0.5, 1.5]


def test_weights_are_exact(tmp_path):
    texts = ["0.1", "1e-320", "17976931348623157e292", "+2.5", "-0.0", "inf", "9007199254740993"]
    content = "".join(f"1 {at} {weight}\n" for at, weight in enumerate(texts, 2))
    graph = Graph.from_edges(written(tmp_path, content))
    by_target = dict(zip(graph.ids.ascending[1:], graph.ids.numbers[1:], strict=True))
    row = dict(zip(graph.out.columns.tolist(), graph.out.weights.tolist(), strict=True))
    assert [row[by_target[at]] for at in range(2, 9)] == [float(weight) for weight in texts]


def test_ids_of_unsigned_64_bits_are_read(tmp_path):
    graph = Graph.from_edges(written(tmp_path, f"0 {2**64 - 1}\n{2**63} 5\n"))
    assert graph.ids.as_arrow().to_pylist() == [0, 5, 2**63, 2**64 - 1]


@pytest.mark.parametrize(
    "line, problem",
    [
        ("7", "'7' has 1 field, but the lines before it have 2"),
        ("7 8 9", "'7 8 9' has 3 fields, but the lines before it have 2"),
        ("7 x", "'x' is not a whole number"),
        ("-,7", "'-' is not a whole number"),
        ("7 8.0", "'8.0' is not a whole number"),
        ("7 +8", "'\\+8' is not a whole number"),
        (f"7 {2**64}", f"the id '{2**64}' is beyond 64 bits"),
        (f"7 -{2**63 + 1}", f"the id '-{2**63 + 1}' is beyond 64 bits"),
        (f"7 {10**400}", "the id '1000.*'... is beyond 64 bits"),
        ("7 \0", r"'\\x00' is not a whole number"),
    ],
)
@pytest.mark.parametrize("num_before", [2, 300_000])
def test_a_broken_line_is_named(tmp_path, line, problem, num_before):
    """Test lines in the first and in later blocks."""
    content = "# comment\n\n" + "1 2\n" * num_before + f"{line}\n" + "3 4\n" * 9 + "x y z\n"
    path = written(tmp_path, content)
    with pytest.raises(EdgeFileError, match=problem) as raised:
        Graph.from_edges(path)
    assert raised.value.line == num_before + 3
    assert raised.value.path == str(path)


@pytest.mark.parametrize("weight", ["nan", "heavy", "1,5e", "0x1"])
def test_a_weight_that_is_no_number_is_named_with_its_line(tmp_path, weight):
    weight = weight.replace(",", ".")
    path = written(tmp_path, f"1 2 0.5\n# c\n2 3 {weight}\n")
    with pytest.raises(EdgeFileError, match=f"the weight '{weight}' is not a number") as raised:
        Graph.from_edges(path)
    assert raised.value.line == 3


def test_a_string_that_is_no_utf8_is_named_with_its_line(tmp_path):
    path = written(tmp_path, b"anna bert\nb\xffrt anna\n")
    with pytest.raises(EdgeFileError, match="is not UTF-8") as raised:
        Graph.from_edges(path)
    assert raised.value.line == 2


def test_one_field_makes_no_edge(tmp_path):
    with pytest.raises(EdgeFileError, match=r"edges\.txt, line 1: .*two fields"):
        Graph.from_edges(written(tmp_path, "1\n2\n"))


def test_negative_ids_beside_those_beyond_63_bits_are_an_error(tmp_path):
    with pytest.raises(EdgeFileError, match="negative ids and ids beyond the 63 bits"):
        Graph.from_edges(written(tmp_path, f"-1 {2**63}\n"))


def test_a_file_that_is_not_there_a_folder_and_a_damaged_one_are_named(tmp_path):
    with pytest.raises(EdgeFileError, match="gone.*No such file"):
        Graph.from_edges(tmp_path / "gone")
    with pytest.raises(EdgeFileError, match="is a folder"):
        Graph.from_edges(str(tmp_path))
    half = gzip.compress(b"1 2\n" * 9)[:-9]
    with pytest.raises(EdgeFileError, match="is damaged"):
        Graph.from_edges(written(tmp_path, half, "half.gz"))


def test_reading_and_building_are_shown_and_measured(tmp_path):
    path = written(tmp_path, "1 2\n" * 9)
    events, seen = Stream(), []
    with events.listening(seen.append):
        Graph.from_edges(path, events=events)
    started = [event.cost_id for event in seen if isinstance(event, PhaseStarted)]
    assert started == ["graph/read", "graph/build"]
    assert [event.cost_id for event in seen if isinstance(event, Measured)] == started
    assert PhaseAdvanced("graph/read", 36.0) in seen


def test_a_file_that_would_not_fit_is_refused_after_its_first_block(tmp_path, monkeypatch):
    path = written(tmp_path, "1 2\n" * 3_000_000)
    monkeypatch.setattr(memory, "available_memory_bytes", lambda: 100_000_000)
    read = []
    monkeypatch.setattr(text, "_joined", lambda *_: read.append("joined"))
    with pytest.raises(GraphTooLargeError) as raised:
        Graph.from_edges(path)
    assert str(raised.value).startswith(
        f"a graph of about 3.00 M edges needs about {format_bytes(120e6)} of memory"
    )
    assert read == []
