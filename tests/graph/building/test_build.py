"""Graphs compared with the twin: any ids, duplicates, loops, weights, and numbers of threads."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.graph import Graph
from talka.graph import graph as graph_module
from talka.graph.kernels.id_table import empty_table, number_ids
from tests.graph.building import twin as building_twin

CLOSE = st.integers(-3, 9)
SCATTERED = st.one_of(
    st.sampled_from([-(2**63), -1, 0, 1, 2**31, 2**32, 2**63 - 1]), st.integers(-(2**63), 2**63 - 1)
)
WORDS = st.sampled_from(["", "a", "b", "ab", "Ä", "zoë", "10", "9"])
WEIGHTS = st.floats(allow_nan=False, width=32)


@st.composite
def edge_lists(draw, ids):
    few = draw(st.lists(ids, min_size=1, max_size=8))
    end = st.sampled_from(few)  # few ids make duplicates and loops common
    edges = draw(st.lists(st.tuples(end, end), max_size=40))
    return edges, draw(st.one_of(st.none(), st.lists(ids, max_size=3)))


def built(edges, weights, vertices, *, num_threads, **options):
    columns = ([source for source, _ in edges], [target for _, target in edges])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph_module, "num_cores", lambda: num_threads)
        return Graph.from_edges(columns, weights, vertices=vertices, **options)


@settings(deadline=None, max_examples=60)
@pytest.mark.parametrize("ids", [CLOSE, SCATTERED, WORDS], ids=["close", "scattered", "words"])
@given(
    data=st.data(),
    directed=st.booleans(),
    drop_duplicates=st.booleans(),
    drop_loops=st.booleans(),
    num_threads=st.integers(1, 3),
)
def test_a_graph_is_what_the_twin_builds(ids, data, num_threads, **options):
    edges, vertices = data.draw(edge_lists(ids))
    lists = st.lists(WEIGHTS, min_size=len(edges), max_size=len(edges))
    weights = data.draw(st.one_of(st.none(), lists))
    graph = built(edges, weights, vertices, num_threads=num_threads, **options)
    twin = building_twin.build(edges, weights, vertices=vertices or (), **options)
    building_twin.assert_same(graph, twin)
    assert graph.is_weighted == (weights is not None)
    assert graph.directed == options["directed"]
    assert (graph.into is graph.out) == (not options["directed"])


def random_edges(num_edges, num_vertices, *, seed=0):
    """Return edges with hubs, so that rows have very different lengths."""
    drawn = np.random.default_rng(seed).random((2, num_edges)) ** 3
    return tuple((drawn * num_vertices).astype(np.int64))


@pytest.mark.parametrize("spread", [1, 2**40], ids=["close", "scattered"])
@pytest.mark.parametrize("directed", [True, False])
def test_many_buckets_and_threads_give_what_one_gives(monkeypatch, directed, spread):
    sources, targets = random_edges(60_000, 5_000)
    edges = (sources * spread - 7, targets * spread - 7)
    weights = np.arange(60_000) / 8
    graphs = []
    for num_threads in (1, 2, 3, 8):
        monkeypatch.setattr(graph_module, "num_cores", lambda num=num_threads: num)
        graphs.append(Graph.from_edges(edges, weights, directed))
    pairs = list(zip(*(ids.tolist() for ids in edges), strict=True))
    twin = building_twin.build(pairs, weights.tolist(), directed=directed)
    building_twin.assert_same(graphs[0], twin)
    assert len({graph.fingerprint() for graph in graphs}) == 1


def test_a_hub_of_most_edges_fills_more_than_its_bucket(monkeypatch):
    """Test a row that is longer than a bucket: it must not overwrite the rows after it."""
    monkeypatch.setattr(graph_module, "num_cores", lambda: 3)
    sources = np.concatenate([np.zeros(20_000, int), np.arange(500)])
    targets = np.concatenate([np.arange(20_000) % 700, np.zeros(500, int)])
    graph = Graph.from_edges((sources, targets))
    pairs = list(zip(sources.tolist(), targets.tolist(), strict=True))
    building_twin.assert_same(graph, building_twin.build(pairs))


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
)
def test_whole_numbers_of_any_width_are_ids(dtype):
    limits = np.iinfo(dtype)
    sources = np.array([limits.min, limits.max, 5], dtype)
    targets = np.array([limits.max, 5, limits.min], dtype)
    graph = Graph.from_edges((sources, targets))
    pairs = list(zip(sources.tolist(), targets.tolist(), strict=True))
    building_twin.assert_same(graph, building_twin.build(pairs))


def test_the_arrays_of_the_caller_may_be_strided_and_stay_as_they_are():
    edges = np.array([[1, 2], [2, 3], [1, 3]])
    edges.flags.writeable = False
    graph = Graph.from_edges((edges[:, 0], edges[:, 1]))
    building_twin.assert_same(graph, building_twin.build(edges.tolist()))
    ends = np.array([3, 1])
    Graph.from_edges((ends, ends))
    assert ends.flags.writeable


def test_a_table_of_ids_grows_and_keeps_its_numbers():
    ids = np.random.default_rng(1).integers(0, 2**64, 5_000, np.uint64)
    ids = np.concatenate([ids, ids[::-1]])
    numbers = np.empty(len(ids), np.uint32)
    table = number_ids(ids, numbers, empty_table(16))
    first_seen = {}
    assert numbers.tolist() == [first_seen.setdefault(id_, len(first_seen)) for id_ in ids.tolist()]
    assert table.known[: table.num_known[0]].tolist() == list(first_seen)


BOUNDS_CHECKED = """
import numpy as np
from talka.graph import Graph
from tests.graph.building.test_build import random_edges
sources, targets = random_edges(9_000, 700)
for spread in (1, 2**40):
    for directed in (True, False):
        for weights in (None, np.ones(9_000)):
            edges = (sources * spread, targets * spread)
            graph = Graph.from_edges(edges, weights, directed, drop_duplicates=True)
            graph.undirected()
Graph.from_edges(([], []))
Graph.from_edges(PATH)
print("all within bounds")
"""


def test_kernels_stay_within_their_arrays(tmp_path):
    """Compile kernels with bounds checks, without which a wrong index would not be noticed."""
    path = tmp_path / "edges.txt"
    path.write_text("# x\n1 2 0.5\n\n" * 5_000 + "3\t-4,1e9")
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", BOUNDS_CHECKED.replace("PATH", repr(str(path)))],
        env={**os.environ, **checked},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "all within bounds\n", done.stderr
