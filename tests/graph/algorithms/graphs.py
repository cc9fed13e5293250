"""Small graphs of every kind, each with the networkx graph of the same edges."""

from typing import NamedTuple

import networkx as nx
from hypothesis import strategies as st

from talka.graph import Graph, RunOptions

EDGE_CUTS = [(1, "ranges"), (2, "ranges"), (5, "ranges"), (2, "hash"), (5, "hash")]
ALL_CUTS = [*EDGE_CUTS, (2, "vertex_cut"), (5, "vertex_cut")]
MAX_SUPERSTEPS = 500  # so that a program that does not end fails instead of hanging


class Case(NamedTuple):
    """A graph as lists, in the order in which they are passed."""

    pairs: list
    weights: list | None
    vertices: list
    directed: bool

    def graph(self):
        return Graph.from_edges(
            ([source for source, _ in self.pairs], [target for _, target in self.pairs]),
            self.weights,
            self.directed,
            vertices=self.vertices,
        )

    def peer(self):
        """Return the networkx graph, with parallel edges."""
        peer = nx.MultiDiGraph() if self.directed else nx.MultiGraph()
        peer.add_nodes_from(self.vertices)
        weights = self.weights or [1.0] * len(self.pairs)
        for (source, target), weight in zip(self.pairs, weights, strict=True):
            peer.add_edge(source, target, weight=weight)
        return peer

    def simple_peer(self):
        """Return the undirected networkx graph without parallel edges and loops."""
        peer = nx.Graph(self.peer().to_undirected())
        peer.remove_edges_from(list(nx.selfloop_edges(peer)))
        return peer


@st.composite
def cases(draw, min_vertices=1, weighted=None):
    """Draw graphs with loops, parallel edges, isolated vertices, and ids of both types."""
    num_vertices = draw(st.integers(min_vertices, 9))
    ids = st.integers(-(2**40), 2**40) if draw(st.booleans()) else st.text("abxyé", max_size=3)
    vertices = draw(
        st.lists(ids, min_size=num_vertices, max_size=num_vertices, unique=True).map(list)
    )
    end = st.sampled_from(vertices) if vertices else st.nothing()
    pairs = draw(st.lists(st.tuples(end, end), max_size=24)) if vertices else []
    weights = None
    if draw(st.booleans()) if weighted is None else weighted:
        # Sums of quarters are exact in any order.
        quarter = st.integers(0, 40).map(lambda quarters: quarters / 4)
        weights = draw(st.lists(quarter, min_size=len(pairs), max_size=len(pairs)))
    return Case(pairs, weights, vertices, draw(st.booleans()))


def options_for(cut, engine):
    num_partitions, partitioning = cut
    return RunOptions(
        engine=engine,
        num_partitions=num_partitions,
        partitioning=partitioning,
        max_supersteps=MAX_SUPERSTEPS,
    )


def by_vertex(table, column="value"):
    """Return a table, which must ascend by vertex, as a dictionary."""
    vertices = table["vertex"].to_pylist()
    if vertices and isinstance(vertices[0], str):
        assert vertices == sorted(vertices, key=str.encode)
    else:
        assert vertices == sorted(vertices)
    return dict(zip(vertices, table[column].to_pylist(), strict=True))
