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


@pytest.mark.parametrize("name", [name for name, one in ALGORITHMS.items() if one.runs_program])
def test_ray_gives_what_the_embedded_engine_gives(on_ray, embedded, graph, name):
    algorithm = ALGORITHMS[name]
    given = [graph.vertex_of(0)] if algorithm.needs_source else []
    here, there = (
        algorithm.function(graph, *given, options=options_for((2, "ranges"), engine))
        for engine in (embedded, on_ray)
    )
    assert there.equals(here)
