"""General programs against slow twins, and what they may and may not do."""

from collections import Counter
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.engine import Embedded
from talka.errors import InvalidValueError, NeverHaltsError, TaskError
from talka.graph import Graph, RunOptions, VertexProgram, run_program
from tests.graph.programs import graphs, interpret, pagerank
from tests.graph.vertex_programs import VERTEX_PROGRAMS, Growing, Lists, Ranks


@pytest.fixture(scope="module")
def engine():
    with Embedded(threads=2, processes=1) as engine:
        yield engine


@pytest.mark.parametrize("name", VERTEX_PROGRAMS)
@settings(max_examples=20, deadline=None)
@given(graphs(), st.integers(2, 4), st.sampled_from(["ranges", "hash"]))
def test_partitions_make_no_difference(engine, name, graph, num_partitions, how):
    program = VERTEX_PROGRAMS[name]()
    one = run_program(graph, program, RunOptions(engine=engine))
    options = RunOptions(engine=engine, num_partitions=num_partitions, partitioning=how)
    several = run_program(graph, program, options)
    for column, values in one.columns.items():
        np.testing.assert_allclose(several.columns[column], values, rtol=1e-12)
    assert several.graph.ids.ascending.tolist() == one.graph.ids.ascending.tolist()


@settings(max_examples=20, deadline=None)
@given(graphs(weighted=False), st.integers(1, 3))
def test_ranks_are_those_of_the_edge_program(engine, graph, num_partitions):
    found = run_program(graph, Ranks(), RunOptions(engine=engine, num_partitions=num_partitions))
    np.testing.assert_allclose(found.values, interpret(graph, pagerank(5)), rtol=1e-12)


@settings(max_examples=20, deadline=None)
@given(graphs(weighted=False), st.integers(1, 3))
def test_every_message_arrives_where_it_was_sent(engine, graph, num_partitions):
    found = run_program(graph, Lists(), RunOptions(engine=engine, num_partitions=num_partitions))
    totals, counts = [0] * graph.num_vertices, [0] * graph.num_vertices
    inbox = {}
    for superstep in range(6):
        heard, inbox = inbox, {}
        for v in range(graph.num_vertices):
            said = heard.get(v, [])
            counts[v] += len(said)
            totals[v] = (totals[v] * 3 + sum(said)) % 1009
        for v in range(graph.num_vertices):
            targets = [(v * 7 + superstep) % graph.num_vertices]
            if v % 3 != superstep % 3:
                targets += graph.out.columns[
                    graph.out.offsets[v] : graph.out.offsets[v + 1]
                ].tolist()
            for target in targets:
                inbox.setdefault(target, []).append(totals[v] + v)
    assert found.columns["total"].tolist() == totals
    assert found.columns["count"].tolist() == counts


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=40),
    st.integers(1, 3),
    st.booleans(),
)
def test_changes_of_the_graph_follow_the_rules(engine, pairs, num_partitions, directed):
    graph = Graph.from_edges(tuple(np.array(pairs).T), directed=directed)
    found = run_program(graph, Growing(), RunOptions(engine=engine, num_partitions=num_partitions))
    values, edges = grown(pairs, directed)
    after = found.graph
    assert after.ids.ascending.tolist() == sorted(values)
    assert after.num_edges == len(edges)
    by_id = dict(zip(after.ids.ascending.tolist(), after.ids.numbers.tolist(), strict=True))
    assert {i: int(found.values[n]) for i, n in by_id.items()} == values


def grown(pairs, directed):
    """`Growing`, one vertex at a time. Edges are a list, because copies count."""
    edges = list(pairs)
    values = dict.fromkeys({end for pair in pairs for end in pair}, 0)
    inbox = {}
    for superstep in range(7):
        present = sorted(values)
        heard, inbox = inbox, {}
        for v in present:
            values[v] = (values[v] * 2 + 1 + heard.get(v, 0)) % 1013
        if superstep < 6:
            for a, b in edges:
                for source, target in {(a, b)} if directed or a == b else {(a, b), (b, a)}:
                    inbox[target] = inbox.get(target, 0) + values[source] + 1
        if superstep in (1, 3):
            gone = {v for v in present if v % 11 == superstep}
            cut = {(v, v + 1) for v in present}
            if not directed:
                cut |= {(b, a) for a, b in cut}
            edges = [e for e in edges if e not in cut and not gone & set(e)]
            values = {v: x for v, x in values.items() if v not in gone}
            values.setdefault(5000 + superstep, 0)
            for v in present:
                if v % 7 == superstep:
                    edges.append((v, v + 1000))
                    values.setdefault(v, 0)
                    values.setdefault(v + 1000, 0)
            inbox = {v: said for v, said in inbox.items() if v in values and v not in gone}
    return values, edges


class Silent(VertexProgram):
    def compute(self, step):
        step.vote_to_halt(step.vertices > 0)


class Asleep(VertexProgram):
    """Counts how often a vertex is active: it wakes by messages alone."""

    columns: ClassVar = {"value": np.int64}
    message_type = np.int64
    combine = "sum"

    def compute(self, step):
        step["value"] = step["value"] + step.active
        if step.superstep < 3:
            step.send(np.array([2]), [1])
        step.vote_to_halt()


def test_a_halted_vertex_wakes_when_a_message_reaches_it(engine):
    graph = Graph.from_edges(([0, 1, 2], [1, 2, 3]))
    found = run_program(graph, Asleep(), RunOptions(engine=engine))
    woken = [int(found.values[number]) for number in range(4)]
    assert Counter(woken) == {1: 3, 4: 1}
    assert woken[2] == 4


def test_a_program_that_never_halts_stops(engine):
    graph = Graph.from_edges(([0, 1, 2], [1, 2, 3]))
    with pytest.raises(NeverHaltsError, match="1 vertices"):
        run_program(graph, Silent(), RunOptions(engine=engine, max_supersteps=5))


def test_python_programs_run_in_worker_processes(engine):
    class Slow(Ranks):
        python = True

    graph = Graph.from_edges(([0, 1, 2], [1, 2, 0]))
    options = RunOptions(engine=engine, num_partitions=2)
    assert (
        run_program(graph, Slow(), options).values.tolist()
        == run_program(graph, Ranks(), options).values.tolist()
    )


class TestErrors:
    graph = Graph.from_edges(([0, 1], [1, 2]))

    def failing(self, engine, **body):
        program = type("Bad", (VertexProgram,), body)()
        with pytest.raises((TaskError, InvalidValueError)) as caught:
            run_program(self.graph, program, RunOptions(engine=engine, max_supersteps=3))
        return str(caught.value)

    def test_what_compute_raises_is_told_with_its_line(self, engine):
        def compute(self, step):
            step["nonsense"]

        assert "no column named 'nonsense'" in self.failing(engine, compute=compute)

    def test_a_receiver_that_does_not_exist(self, engine):
        def compute(self, step):
            step.send([9], [1.0])

        assert "a vertex number is 9" in self.failing(engine, compute=compute)

    def test_an_inbox_where_messages_are_combined(self, engine):
        said = self.failing(engine, combine="sum", compute=lambda self, step: step.inbox)
        assert "combine is 'sum'" in said

    def test_changes_that_were_not_announced(self, engine):
        said = self.failing(engine, compute=lambda self, step: step.add_vertices([5]))
        assert "mutates" in said

    def test_a_vertex_cut(self, engine):
        options = RunOptions(engine=engine, num_partitions=2, partitioning="vertex_cut")
        with pytest.raises(InvalidValueError, match="ranges or hash"):
            run_program(self.graph, Ranks(), options)

    def test_a_combine_that_is_unknown(self, engine):
        assert "sum, min, max or None" in self.failing(engine, combine="mean")
