"""Algorithms over graphs, each implemented as a program that a user could have written.

`ALGORITHMS` maps the names of the command line to them.
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
    """An algorithm of the command line: `function(graph, ...)`, with options as keywords."""

    function: Callable[..., Any]
    help: str
    needs_source: bool = False
    runs_program: bool = True
    """True if it takes `options` and returns a table; otherwise it returns a dictionary."""


ALGORITHMS: dict[str, Algorithm] = {
    "bfs": Algorithm(bfs, "edges on a shortest path from a source", needs_source=True),
    "sssp": Algorithm(sssp, "smallest sum of weights on a path from a source", needs_source=True),
    "pagerank": Algorithm(pagerank, "share of time that a random walk spends at each vertex"),
    "components": Algorithm(components, "weakly connected components, by their smallest id"),
    "strong-components": Algorithm(
        strong_components, "strongly connected components, by their smallest id"
    ),
    "communities": Algorithm(communities, "communities by label propagation, LDBC's rule"),
    "clustering": Algorithm(clustering, "local clustering coefficients, LDBC's rule"),
    "triangles": Algorithm(triangles, "number of triangles at each vertex"),
    "cores": Algorithm(cores, "core numbers"),
    "degrees": Algorithm(
        degree_statistics, "distribution of degrees; loops, duplicates", runs_program=False
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
