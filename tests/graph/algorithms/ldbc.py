"""LDBC Graphalytics: validation graphs with their parameters and expected results."""

import math
import re
from typing import NamedTuple

import pytest

from talka.graph import Graph
from tests.graph.algorithms.graphs import by_vertex
from tests.graph.edges import data_file

ALGORITHMS = ("bfs", "cdlp", "lcc", "pr", "sssp", "wcc")
_NO_PATH = {"9223372036854775807", "Infinity"}


class Validation(NamedTuple):
    """One algorithm on one graph: the example, or the graph for this algorithm."""

    algorithm: str
    is_example: bool
    directed: bool

    @property
    def name(self):
        side = "directed" if self.directed else "undirected"
        return f"example-{side}" if self.is_example else f"test-{self.algorithm}-{side}"

    def graph(self):
        short = "dir" if self.directed else "undir"
        if self.is_example:
            path = f"example/{self.name}.e"
        elif self.algorithm == "sssp":
            path = f"sssp/{short}-input.e"
        else:
            path = f"{self.algorithm}/{short}-input"
        return Graph.from_edges(data_file(f"graphalytics/{path}"), directed=self.directed)

    def expected(self):
        short = "dir" if self.directed else "undir"
        path = f"{self.algorithm}/{short}-output"
        if self.is_example:
            path = f"example/{self.name}-{self.algorithm.upper()}"
        lines = data_file(f"graphalytics/{path}").read_text().splitlines()
        pairs = [line.split() for line in lines]
        return {int(v): None if value in _NO_PATH else float(value) for v, value in pairs}

    def parameters(self):
        """Return the properties of the algorithm and of the graph."""
        text = data_file(f"graphalytics/{self.name}.properties").read_text()
        properties = dict(re.findall(rf"^graph\.{self.name}\.(\S+) = (.+)$", text, re.MULTILINE))
        return {
            name.removeprefix(f"{self.algorithm}."): value for name, value in properties.items()
        }

    def run(self, graph, options):
        parameters = self.parameters()
        if self.algorithm in ("bfs", "sssp"):
            return getattr(graph, self.algorithm)(int(parameters["source-vertex"]), options=options)
        if self.algorithm == "cdlp":
            return graph.communities(int(parameters["max-iterations"]), options=options)
        if self.algorithm == "pr":
            damping = float(parameters["damping-factor"])
            num_supersteps = int(parameters["num-iterations"])
            return graph.pagerank(damping, num_supersteps, options=options)
        return {"lcc": graph.clustering, "wcc": graph.components}[self.algorithm](options=options)

    def check(self, table):
        """Compare BFS and CDLP exactly, WCC up to names, the others within 1e-4, relative."""
        found, expected = by_vertex(table), self.expected()
        assert found.keys() == expected.keys()
        if self.algorithm == "wcc":
            assert _groups(found) == _groups(expected)
        elif self.algorithm in ("bfs", "cdlp"):
            assert found == expected
        else:
            assert _without_null(found) == pytest.approx(_without_null(expected), rel=1e-4, abs=0)


VALIDATIONS = [
    Validation(algorithm, is_example, directed)
    for algorithm in ALGORITHMS
    for is_example in (True, False)
    for directed in (True, False)
]


def _without_null(values):
    return {vertex: math.inf if value is None else value for vertex, value in values.items()}


def _groups(names):
    return {frozenset(v for v in names if names[v] == name) for name in names.values()}
