"""All validation graphs of LDBC Graphalytics, for all partitionings, on both engines."""

import pytest

from tests.graph.algorithms.graphs import ALL_CUTS, EDGE_CUTS, options_for
from tests.graph.algorithms.ldbc import VALIDATIONS

EDGE_PROGRAMS = ("bfs", "pr", "sssp")


def named(validation):
    return f"{validation.algorithm}-{validation.name}"


@pytest.mark.parametrize("validation", VALIDATIONS, ids=named)
def test_answers_are_those_of_ldbc(embedded, validation):
    graph = validation.graph()
    parameters = validation.parameters()
    assert graph.num_vertices == int(parameters["meta.vertices"])
    assert graph.num_edges == int(parameters["meta.edges"])
    for cut in ALL_CUTS if validation.algorithm in EDGE_PROGRAMS else EDGE_CUTS:
        validation.check(validation.run(graph, options_for(cut, embedded)))


@pytest.mark.slow
@pytest.mark.parametrize("validation", VALIDATIONS, ids=named)
def test_answers_are_those_of_ldbc_on_ray(on_ray, validation):
    graph = validation.graph()
    for cut in ((1, "ranges"), (2, "hash"), (5, "ranges")):
        validation.check(validation.run(graph, options_for(cut, on_ray)))
