"""Invalid arguments of algorithms, and graphs with no or one vertex."""

import math

import numpy as np
import pytest

from talka.errors import GraphError, InvalidValueError, UnknownVertexError
from talka.graph import Graph
from talka.graph.algorithms import ALGORITHMS
from tests.graph.algorithms.graphs import ALL_CUTS, EDGE_CUTS, options_for

EDGE_PROGRAMS = ("bfs", "sssp", "pagerank", "strong-components")
PROGRAMS = [name for name, algorithm in ALGORITHMS.items() if algorithm.runs_program]


def graph_of(pairs, weights=None, **options):
    return Graph.from_edges(([s for s, _ in pairs], [t for _, t in pairs]), weights, **options)


def run(name, graph, cut, engine):
    sources = [graph.vertex_of(0)] if ALGORITHMS[name].needs_source else []
    return ALGORITHMS[name].function(graph, *sources, options=options_for(cut, engine))


@pytest.mark.parametrize("source", [4, -1, 2**70, "1", 1.5, None])
@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
def test_a_source_that_does_not_exist(algorithm, source):
    with pytest.raises(UnknownVertexError, match="whole numbers from 1 to 5"):
        getattr(graph_of([(1, 3), (3, 5)]), algorithm)(source)


@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
def test_no_source_at_all(algorithm):
    with pytest.raises(InvalidValueError, match="source is .* at least one vertex"):
        getattr(graph_of([(1, 3)]), algorithm)([])
    with pytest.raises(UnknownVertexError, match="the graph is empty"):
        getattr(graph_of([]), algorithm)(1)


@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
@pytest.mark.parametrize("cut", ALL_CUTS)
def test_an_isolated_source_reaches_itself_alone(embedded, algorithm, cut):
    graph = graph_of([(1, 2)], vertices=[7])
    table = getattr(graph, algorithm)(7, options=options_for(cut, embedded))
    assert table.to_pydict() == {"vertex": [1, 2, 7], "value": [None, None, 0]}


def test_a_negative_weight_is_refused_with_its_edge():
    graph = graph_of([("a", "b"), ("b", "c"), ("c", "a")], [1.0, -2.5, 3.0])
    with pytest.raises(InvalidValueError, match=r"from 'b' to 'c' is -2\.5, but must be 0 or more"):
        graph.sssp("a")
    assert graph.bfs("a")["value"].to_pylist() == [0, 1, 2]


def test_a_weight_that_is_nan_makes_no_graph():
    with pytest.raises(GraphError, match=r"NaN or NULL \(edge 1\)"):
        graph_of([(1, 2), (2, 3)], [1.0, math.nan])


def test_an_endless_weight_leads_nowhere():
    graph = graph_of([(1, 2), (2, 3)], [1.0, math.inf])
    assert graph.sssp(1)["value"].to_pylist() == [0.0, 1.0, None]


@pytest.mark.parametrize("damping", [-0.1, 1.1, math.nan])
def test_damping_outside_of_0_to_1(damping):
    with pytest.raises(InvalidValueError, match="damping is .* from 0 to 1"):
        graph_of([(1, 2)]).pagerank(damping)


@pytest.mark.parametrize("tolerance", [0, -1e-6, math.nan])
def test_a_tolerance_that_is_never_reached(tolerance):
    with pytest.raises(InvalidValueError, match="tolerance is .* above 0"):
        graph_of([(1, 2)]).pagerank(tolerance=tolerance)


@pytest.mark.parametrize("sources", [{1: -1.0, 2: 2.0}, {1: 0.0}, {1: math.nan}, {1: math.inf}])
def test_sources_without_a_share(sources):
    with pytest.raises(InvalidValueError, match="weights of 0 or more, not all 0"):
        graph_of([(1, 2)]).pagerank(sources=sources)


def test_sources_that_do_not_exist():
    with pytest.raises(UnknownVertexError, match="no vertex 9"):
        graph_of([(1, 2)]).pagerank(sources=[1, 9])


@pytest.mark.parametrize("algorithm", ["pagerank", "communities"])
def test_fewer_than_no_supersteps(algorithm):
    with pytest.raises(InvalidValueError, match="num_supersteps is -1, but must be 0 or more"):
        getattr(graph_of([(1, 2)]), algorithm)(num_supersteps=-1)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in EDGE_PROGRAMS])
def test_general_programs_refuse_a_vertex_cut(embedded, name):
    with pytest.raises(InvalidValueError, match="vertex_cut.*ranges or hash"):
        run(name, graph_of([(1, 2), (2, 3)]), (2, "vertex_cut"), embedded)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if not ALGORITHMS[name].needs_source])
@pytest.mark.parametrize("directed", [True, False])
def test_an_empty_graph_gives_an_empty_table(embedded, name, directed):
    for cut in EDGE_CUTS:
        table = run(name, graph_of([], directed=directed), cut, embedded)
        assert table.column_names == ["vertex", "value"]
        assert table.num_rows == 0


ALONE = {"pagerank": 1.0, "components": 3, "strong-components": 3, "communities": 3}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("pairs", [[], [(3, 3)], [(3, 3), (3, 3)]], ids=["bare", "loop", "loops"])
def test_one_vertex_is_alone_with_and_without_loops(embedded, name, pairs):
    for cut in EDGE_CUTS:
        for directed in (True, False):
            graph = graph_of(pairs, vertices=[3], directed=directed)
            table = run(name, graph, cut, embedded)
            assert table.to_pydict() == {"vertex": [3], "value": [ALONE.get(name, 0)]}


def test_degree_statistics_of_an_empty_graph():
    assert graph_of([]).degree_statistics()["out"]["mean"] is None


def test_ids_of_64_bits_come_back_whole():
    ids = np.array([2**64 - 1, 2**63, 5], np.uint64)
    graph = Graph.from_edges((ids[:2], ids[1:]))
    assert graph.components()["value"].to_pylist() == [5, 5, 5]
    assert graph.bfs(2**64 - 1, with_parents=True)["parent"].to_pylist() == [2**63, 2**64 - 1, None]
