"""Algorithms over graphs, each a program that a user could have written.

`ALGORITHMS` has them by the names that the command line knows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from talka.graph.algorithms.bfs import bfs
from talka.graph.algorithms.clustering import clustering
from talka.graph.algorithms.communities import communities
from talka.graph.algorithms.components import components
from talka.graph.algorithms.cores import cores
from talka.graph.algorithms.degree_statistics import degree_statistics
from talka.graph.algorithms.pagerank import pagerank
from talka.graph.algorithms.sssp import sssp
from talka.graph.algorithms.strong_components import strong_components
from talka.graph.algorithms.triangles import num_triangles, triangles


@dataclass(frozen=True, slots=True)
class Algorithm:
    """How the command line calls one: `function(graph, ...)`, with options as keywords."""

    function: Callable[..., Any]
    help: str
    needs_source: bool = False
    runs_program: bool = True
    """Takes `options` and gives a table; else it takes the graph alone and gives a dictionary."""


ALGORITHMS: dict[str, Algorithm] = {
    "bfs": Algorithm(bfs, "edges on a shortest path from a source", needs_source=True),
    "sssp": Algorithm(sssp, "smallest sum of weights on a path from a source", needs_source=True),
    "pagerank": Algorithm(pagerank, "where a walker is who follows edges at random"),
    "components": Algorithm(components, "weakly connected components, by their smallest id"),
    "strong-components": Algorithm(
        strong_components, "strongly connected components, by their smallest id"
    ),
    "communities": Algorithm(communities, "communities by label propagation, LDBC's rule"),
    "clustering": Algorithm(clustering, "local clustering coefficients, LDBC's rule"),
    "triangles": Algorithm(triangles, "triangles that each vertex is part of"),
    "cores": Algorithm(cores, "core numbers"),
    "degrees": Algorithm(
        degree_statistics, "how degrees are spread; loops, duplicates", runs_program=False
    ),
}

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "bfs",
    "clustering",
    "communities",
    "components",
    "cores",
    "degree_statistics",
    "num_triangles",
    "pagerank",
    "sssp",
    "strong_components",
    "triangles",
]
