"""General programs against slow reference implementations, their features and their errors."""

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
        received, inbox = inbox, {}
        for v in range(graph.num_vertices):
            messages = received.get(v, [])
            counts[v] += len(messages)
            totals[v] = (totals[v] * 3 + sum(messages)) % 1009
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
    """Run `Growing` one vertex at a time. Edges are a list, because parallel edges count."""
    edges = list(pairs)
    values = dict.fromkeys({end for pair in pairs for end in pair}, 0)
    inbox = {}
    for superstep in range(7):
        present = sorted(values)
        received, inbox = inbox, {}
        for v in present:
            values[v] = (values[v] * 2 + 1 + received.get(v, 0)) % 1013
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
            inbox = {v: total for v, total in inbox.items() if v in values and v not in gone}
    return values, edges


class Asking(VertexProgram):
    """Every partition requests the same edges, with different weights, and one that exists."""

    columns: ClassVar = {"value": np.int64}
    mutates = True
    num_supersteps = 2

    def compute(self, step):
        if step.superstep < 2:
            step.add_edges([], [])
            for vertex in step.ids:
                step.add_edges([7, 100, 100], [100, 7, 7], [9.0 - vertex, 3.0, 5.0 + vertex])
            step.add_edges([0], [1], [-1.0])


@pytest.mark.parametrize("num_partitions", [1, 2, 5])
@pytest.mark.parametrize("directed", [True, False])
def test_an_edge_that_several_partitions_ask_for_is_added_once(engine, num_partitions, directed):
    path = np.arange(8)
    graph = Graph.from_edges((path[:-1], path[1:]), np.ones(7), directed)
    options = RunOptions(engine=engine, num_partitions=num_partitions, partitioning="hash")
    after = run_program(graph, Asking(), options).graph
    added = {(7, 100): 2.0, (100, 7): 3.0 if directed else 2.0}  # 9 - 7 is the smallest
    expected = {**{(v, v + 1): 1.0 for v in range(7)}, **added}
    if not directed:
        expected |= {(b, a): weight for (a, b), weight in expected.items()}
    assert edges_of(after) == sorted((*ends, weight) for ends, weight in expected.items())
    assert after.num_edges == (9 if directed else 8)


def edges_of(graph):
    """Source, target and weight by id; an undirected edge both ways."""
    sources = np.repeat(np.arange(graph.num_vertices), graph.out.degrees())
    return sorted(
        (graph.vertex_of(a), graph.vertex_of(b), float(w))
        for a, b, w in zip(sources, graph.out.columns, graph.out.weights, strict=True)
    )


class Naming(VertexProgram):
    mutates = True
    num_supersteps = 1

    def compute(self, step):
        if step.superstep == 0:
            step.add_edges(["a", "b"], ["new", "a"])


def test_vertices_with_names_may_get_edges(engine):
    graph = Graph.from_edges((["a", "b"], ["b", "c"]))
    after = run_program(graph, Naming(), RunOptions(engine=engine, num_partitions=2)).graph
    assert after.ids.ascending.to_pylist() == ["a", "b", "c", "new"]
    assert after.num_edges == 4


class Silent(VertexProgram):
    def compute(self, step):
        step.vote_to_halt(step.vertices > 0)


class Asleep(VertexProgram):
    """Counts in how many supersteps a vertex is active; only messages activate it."""

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


def test_the_former_name_of_the_identity_works_with_a_warning():
    class Former(VertexProgram):
        combine = "min"
        num_supersteps = 1

        def compute(self, step):
            with pytest.warns(DeprecationWarning, match="'nothing' is now called 'identity'"):
                step["value"] = step.nothing

    graph = Graph.from_edges(([0], [1]))
    assert run_program(graph, Former(), RunOptions()).values.tolist() == [np.inf, np.inf]


class Zeros(VertexProgram):
    """Sends messages that combine to the identity; counts receivers and activations."""

    columns: ClassVar = {"woken": np.int64, "got": np.int64}
    message_type = np.int64

    def __init__(self, combine, way, mutates=False):
        self.combine, self.way, self.mutates = combine, way, mutates

    def compute(self, step):
        step["woken"] = step["woken"] + step.active
        step["got"] = step["got"] + step.got_message
        if step.superstep == 0:
            messages = np.full(len(step.vertices), step.identity)
            if self.combine == "sum":
                messages = np.where(step.vertices % 2, 1, -1)  # pairs of them are 0
            self.send(step, messages)
        if self.mutates and step.superstep == 0:
            step.add_vertices([50])
        step.vote_to_halt()

    def send(self, step, messages):
        where = step.vertices % 5 != 0
        if self.way == "edges":
            step.send_along_edges(messages)
        elif self.way == "some":
            step.send_along_edges(messages, where=where)
        elif self.way == "each":
            step.send(step.vertices // 2, messages)
        else:
            step.send_along_edges(messages, where=where)
            step.send_along_edges(messages, where=~where)
            step.send(step.vertices // 2, messages)


@pytest.mark.parametrize("way", ["edges", "some", "each", "all"])
@pytest.mark.parametrize("combine", ["sum", "min", "max"])
def test_any_message_activates_even_the_identity(engine, combine, way):
    generator = np.random.default_rng(7)
    graph = Graph.from_edges(tuple(generator.integers(0, 12, (2, 24))), vertices=np.arange(12))
    sources = np.repeat(np.arange(12), graph.out.degrees())
    if way == "some":
        receivers = set(graph.out.columns[sources % 5 != 0].tolist())
    else:
        receivers = set() if way == "each" else set(graph.out.columns.tolist())
    if way in ("each", "all"):
        receivers |= set(range(6))
    for num_partitions in (1, 3):
        options = RunOptions(engine=engine, num_partitions=num_partitions)
        found = run_program(graph, Zeros(combine, way), options)
        assert found.columns["got"].tolist() == [int(v in receivers) for v in range(12)]
        assert found.columns["woken"].tolist() == [1 + (v in receivers) for v in range(12)]


@pytest.mark.parametrize("num_partitions", [1, 3])
def test_messages_of_zero_survive_a_change_of_the_graph(engine, num_partitions):
    ring = np.arange(6)
    graph = Graph.from_edges((ring, (ring + 1) % 6))
    options = RunOptions(engine=engine, num_partitions=num_partitions)
    found = run_program(graph, Zeros("max", "edges", mutates=True), options)
    got = {i: int(found.columns["got"][found.graph.number_of(i)]) for i in [*ring.tolist(), 50]}
    assert got == {**dict.fromkeys(range(6), 1), 50: 0}


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


class Signed(VertexProgram):
    columns: ClassVar = {"balance": np.int64, "negative": np.int64, "neighbours": np.int64}
    num_supersteps = 0

    def compute(self, step):
        step["balance"] = step.in_degrees - step.out_degrees
        step["negative"] = -step.vertices
        first = step.numbers_of_slots[step.edges.columns[:1]]
        step["neighbours"] = (first - 100).sum()


def test_degrees_and_numbers_are_signed(engine):
    graph = Graph.from_edges(([0, 0, 1], [1, 2, 2]))
    found = run_program(graph, Signed(), RunOptions(engine=engine))
    by_id = {vertex: found.columns["balance"][graph.number_of(vertex)] for vertex in range(3)}
    assert by_id == {0: -2, 1: 0, 2: 2}
    assert found.columns["negative"].tolist() == [0, -1, -2]
    assert (found.columns["neighbours"] < 0).all()


class TestErrors:
    graph = Graph.from_edges(([0, 1], [1, 2]))

    def failing(self, engine, **body):
        program = type("Bad", (VertexProgram,), body)()
        with pytest.raises((TaskError, InvalidValueError)) as caught:
            run_program(self.graph, program, RunOptions(engine=engine, max_supersteps=3))
        return str(caught.value)

    def test_an_error_in_compute_is_reported(self, engine):
        def compute(self, step):
            step["nonsense"]

        assert "no column named 'nonsense'" in self.failing(engine, compute=compute)

    def test_a_receiver_that_does_not_exist(self, engine):
        def compute(self, step):
            step.send([9], [1.0])

        assert "a vertex number is 9" in self.failing(engine, compute=compute)

    def test_a_receiver_below_the_first(self, engine):
        def compute(self, step):
            step.send(step.vertices - 1, 1.0)

        assert "a vertex number is -1" in self.failing(engine, compute=compute)

    def test_an_inbox_where_messages_are_combined(self, engine):
        message = self.failing(engine, combine="sum", compute=lambda self, step: step.inbox)
        assert "combine is 'sum', but must be None" in message

    def test_a_combined_message_without_combine(self, engine):
        message = self.failing(engine, compute=lambda self, step: step.combined)
        assert "combine is None, but must be sum, min or max to read" in message

    def test_changes_that_were_not_announced(self, engine):
        message = self.failing(engine, compute=lambda self, step: step.add_vertices([5]))
        assert "mutates" in message

    def test_a_vertex_cut(self, engine):
        options = RunOptions(engine=engine, num_partitions=2, partitioning="vertex_cut")
        with pytest.raises(InvalidValueError, match="ranges or hash"):
            run_program(self.graph, Ranks(), options)

    def test_a_combine_that_is_unknown(self, engine):
        assert "sum, min, max or None" in self.failing(engine, combine="mean")
