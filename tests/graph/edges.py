"""Graphs for tests of kernels: lists of edges, and their rows in both directions."""

import gzip
import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st

from talka.graph.csr import Csr

DATA = Path(os.environ.get("TALKA_DATA", "../shared/data")) / "graphs"


class Edges(NamedTuple):
    num_vertices: int
    pairs: list[tuple[int, int]]
    """Edges; an undirected one is here once, and in both directions in rows."""
    directed: bool = True
    weighted: bool = False

    def stored(self):
        """Return (source, target, weight) as rows hold them; weights are numbers of edges."""
        forward = [(*pair, float(place)) for place, pair in enumerate(self.pairs)]
        if self.directed:
            return forward
        return forward + [
            (target, source, weight) for source, target, weight in forward if source != target
        ]

    def sides(self):
        """Return (out, into); `into is out` if undirected."""
        stored = self.stored()
        out = rows(self.num_vertices, stored, weighted=self.weighted)
        if not self.directed:
            return out, out
        turned = [(target, source, weight) for source, target, weight in stored]
        return out, rows(self.num_vertices, turned, weighted=self.weighted)

    def neighbours(self):
        """Return the neighbours of each vertex in the undirected, simple graph."""
        around = [set() for _ in range(self.num_vertices)]
        for a, b in self.pairs:
            if a != b:
                around[a].add(b)
                around[b].add(a)
        return around

    def by_degree(self):
        """Return the same graph with numbers that descend by degree."""
        degrees = Counter(end for pair in self.pairs for end in pair)
        order = sorted(range(self.num_vertices), key=lambda vertex: (-degrees[vertex], vertex))
        numbers = {vertex: number for number, vertex in enumerate(order)}
        return self._replace(pairs=[(numbers[a], numbers[b]) for a, b in self.pairs])


def rows(num_rows, triples, *, weighted=False):
    triples = sorted(triples)
    counts = np.bincount([source for source, _, _ in triples], minlength=num_rows)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
    columns = np.array([target for _, target, _ in triples], np.uint32)
    weights = np.array([weight for _, _, weight in triples], np.float64)
    return Csr(offsets, columns, weights if weighted else None)


@st.composite
def any_edges(draw, max_vertices=9, max_edges=40):
    """Draw small graphs with loops, duplicates and isolated vertices; also of 0 and 1 vertices."""
    num_vertices = draw(st.integers(0, max_vertices))
    end = st.integers(0, max(num_vertices - 1, 0))
    pairs = st.lists(st.tuples(end, end), max_size=max_edges if num_vertices else 0)
    return Edges(num_vertices, draw(pairs), draw(st.booleans()), draw(st.booleans()))


def hubs(scale=11, edge_factor=8, *, directed=True, seed=7):
    """Return an R-MAT graph, which has few hubs; numbers descend by degree."""
    random = np.random.default_rng(seed)
    ends = np.zeros((edge_factor << scale, 2), np.int64)
    for _ in range(scale):
        quarter = random.choice(4, len(ends), p=[0.57, 0.19, 0.19, 0.05])
        ends = 2 * ends + np.stack([quarter // 2, quarter % 2], axis=1)
    return Edges(1 << scale, [tuple(pair) for pair in ends.tolist()], directed).by_degree()


def data_file(name):
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{path} is not here (TALKA_DATA names the folder)")
    return path


def snap_sides(name):
    """Return (out, into) of an edge list of SNAP, directed; numbers descend by degree."""
    with gzip.open(data_file(name)) as file:
        ids, places = np.unique(np.loadtxt(file, np.int64, comments="#"), return_inverse=True)
    numbers = np.argsort(np.argsort(-np.bincount(places.ravel()), kind="stable")).astype(np.uint32)
    ends = numbers[places.reshape(-1, 2)].T
    return tuple(_sorted_rows(len(ids), *turned) for turned in (ends, ends[::-1]))


def _sorted_rows(num_rows, sources, targets):
    offsets = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=num_rows))])
    return Csr(offsets.astype(np.uint32), targets[np.lexsort((targets, sources))], None)


def ldbc_case(folder, algorithm, *, directed):
    """Return a validation graph of LDBC Graphalytics: ids, edges by place, expected values."""
    if folder == "example":
        graph = f"example-{'directed' if directed else 'undirected'}"
        names = (f"{graph}-input", f"{graph}-{algorithm}")
    else:
        names = ("dir-input", "dir-output") if directed else ("undir-input", "undir-output")
    paths = [data_file(f"graphalytics/{folder}/{name}") for name in names]
    given, expected = (path.read_text().splitlines() for path in paths)
    lines = [list(map(int, line.split())) for line in given]
    values = dict(line.split() for line in expected)
    ids = sorted({vertex for line in lines for vertex in line})
    places = {vertex: place for place, vertex in enumerate(ids)}
    pairs = [(places[source], places[target]) for source, *targets in lines for target in targets]
    if not directed:
        pairs = sorted({(min(pair), max(pair)) for pair in pairs})
    return ids, Edges(len(ids), pairs, directed), [float(values[str(vertex)]) for vertex in ids]
