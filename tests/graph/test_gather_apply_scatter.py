"""docs/gather_apply_scatter.md: its code runs, and both forms of a program give equal results."""

import importlib.util
import re
from collections import defaultdict
from functools import reduce
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.graph import Graph, RunOptions

PAGE = Path(__file__).parents[2] / "docs" / "gather_apply_scatter.md"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """All code of the page as one module, including its assertions."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 4
    path = tmp_path_factory.mktemp("page") / "page_code.py"
    path.write_text("\n".join(blocks))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def gathered(program, graph, *, identity, active, max_supersteps):
    """Run a program slowly: active vertices read all in-edges, apply, activate their targets."""
    incoming, outgoing = defaultdict(list), defaultdict(list)
    out = graph.out
    for source in range(graph.num_vertices):
        for entry in range(int(out.offsets[source]), int(out.offsets[source + 1])):
            target = int(out.columns[entry])
            weight = 1.0 if out.weights is None else float(out.weights[entry])
            incoming[target].append((source, weight))
            outgoing[source].append(target)
    vertices = [
        SimpleNamespace(number=n, num_vertices=graph.num_vertices, out_degree=len(outgoing[n]))
        for n in range(graph.num_vertices)
    ]
    for vertex in vertices:
        vertex.value = program.initial(vertex)
    for _ in range(max_supersteps):
        applied = {}
        for number in active:
            terms = [program.gather(vertices[near], weight) for near, weight in incoming[number]]
            applied[number] = program.apply(vertices[number], reduce(program.sum, terms, identity))
        scattering = [n for n, new in applied.items() if program.scatter(vertices[n].value, new)]
        for number, new in applied.items():
            vertices[number].value = new
        active = {target for number in scattering for target in outgoing[number]}
    return np.array([vertex.value for vertex in vertices])


@st.composite
def graphs(draw):
    num_vertices = draw(st.integers(1, 12))
    ends = st.integers(0, num_vertices - 1)
    edges = draw(st.lists(st.tuples(ends, ends, st.sampled_from([0.25, 1.0, 2.5])), max_size=40))
    sources, targets, weights = zip(*edges, strict=True) if edges else ((), (), ())
    ends = (np.array(sources, np.int64), np.array(targets, np.int64))
    directed = draw(st.booleans())
    vertices = np.arange(num_vertices)
    return Graph.from_edges(ends, np.array(weights, float), directed, vertices=vertices)


CUTS = st.sampled_from(
    [RunOptions()]
    + [RunOptions(num_partitions=3, partitioning=how) for how in ("ranges", "hash", "vertex_cut")]
)


@settings(deadline=None, max_examples=30)
@given(graphs(), CUTS, st.data())
def test_shortest_paths_are_the_same_both_ways(page, graph, options, data):
    source = data.draw(st.integers(0, graph.num_vertices - 1))
    slow = gathered(
        page.ShortestPaths(source),
        graph,
        identity=np.inf,
        active=set(range(graph.num_vertices)) - {source},
        max_supersteps=graph.num_vertices,
    )
    fast = graph.run(page.shortest_paths(source), options)["value"].to_numpy()
    np.testing.assert_array_equal(fast, slow[graph.ids.numbers])


@settings(deadline=None, max_examples=30)
@given(graphs(), CUTS)
def test_pagerank_is_the_same_both_ways(page, graph, options):
    vertices = set(range(graph.num_vertices))
    slow = gathered(page.PageRank(), graph, identity=0.0, active=vertices, max_supersteps=6)
    fast = graph.run(page.page_rank(6), options)["value"].to_numpy()
    np.testing.assert_allclose(fast, slow[graph.ids.numbers], rtol=1e-12)
