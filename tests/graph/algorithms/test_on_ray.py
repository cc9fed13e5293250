"""All algorithms on Ray: the same as on this machine."""

import numpy as np
import pytest

from talka.graph import Graph
from talka.graph.algorithms import ALGORITHMS
from tests.graph.algorithms.graphs import options_for

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def graph():
    random = np.random.default_rng(5)
    sources, targets = random.integers(0, 60, (2, 150)).astype(str)
    return Graph.from_edges((sources, targets), random.integers(1, 9, 150))


PROGRAMS = [name for name, algorithm in ALGORITHMS.items() if algorithm.runs_program]


@pytest.mark.parametrize("name", PROGRAMS)
def test_ray_gives_what_the_embedded_engine_gives(on_ray, embedded, graph, name):
    algorithm = ALGORITHMS[name]
    sources = [graph.vertex_of(0)] if algorithm.needs_source else []
    here, there = (
        algorithm.function(graph, *sources, options=options_for((2, "ranges"), engine))
        for engine in (embedded, on_ray)
    )
    assert there.equals(here)
