"""Published graphs, compared with the counts that their authors give."""

import os
import re
from pathlib import Path

import pytest

from talka.graph import Graph

DATA = Path(os.environ.get("TALKA_DATA", "../shared/data")) / "graphs"
LDBC = [
    "example-directed.properties",
    "example-undirected.properties",
    *(
        f"test-{name}-{kind}.properties"
        for name in ("bfs", "cdlp", "lcc", "pr", "sssp", "wcc")
        for kind in ("directed", "undirected")
    ),
]


def found(name):
    if not (DATA / name).exists():
        pytest.skip(f"{DATA / name} is not here (TALKA_DATA names the folder)")
    return DATA / name


@pytest.mark.parametrize(
    "name, num_vertices, num_edges",
    [
        ("email-Eu-core.txt.gz", 1_005, 25_571),
        ("facebook_combined.txt.gz", 4_039, 88_234),
        ("soc-Epinions1.txt.gz", 75_879, 508_837),
    ],
)
def test_snap_graphs_have_the_counts_of_their_pages(name, num_vertices, num_edges):
    graph = Graph.from_edges(found(name))
    assert (graph.num_vertices, graph.num_edges) == (num_vertices, num_edges)
    assert not graph.is_weighted


def edge_files(folder, properties):
    """The files of the graph that an LDBC file of properties describes."""
    if properties.startswith("example"):
        stem = properties.removesuffix(".properties")
        return [folder / "example" / f"{stem}.e", folder / "example" / f"{stem}-input"]
    _, name, kind = properties.removesuffix(".properties").split("-")
    stem = "dir-input" if kind == "directed" else "undir-input"
    return [path for path in (folder / name / stem, folder / name / f"{stem}.e") if path.exists()]


@pytest.mark.parametrize("properties", LDBC)
def test_ldbc_graphs_have_the_counts_of_their_properties(properties):
    text = found(f"graphalytics/{properties}").read_text()
    counts = tuple(
        int(re.search(rf"meta\.{what} = (\d+)", text)[1]) for what in ("vertices", "edges")
    )
    paths = edge_files(DATA / "graphalytics", properties)
    assert paths
    for path in paths:
        graph = Graph.from_edges(path, directed=".directed = true" in text)
        assert (graph.num_vertices, graph.num_edges) == counts
        assert graph.is_weighted == (path.suffix == ".e")


@pytest.mark.parametrize("name, num_edges", [("dir-input", 248), ("undir-input", 112)])
def test_the_forest_fire_graphs_load(name, num_edges):
    graph = Graph.from_edges(found(f"graphalytics/ffm/{name}"), directed=name == "dir-input")
    assert (graph.num_vertices, graph.num_edges) == (50, num_edges)
