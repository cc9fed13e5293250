"""Edge programs against a slow interpreter, for all partitionings, push and pull."""

import dataclasses
import random
from random import random as shuffled

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import normal

from talka.engine import Embedded
from talka.errors import InvalidValueError, NeverHaltsError, ProgramError, TaskError
from talka.graph import Aggregate, EdgeProgram, Graph, RunOptions, run_program
from talka.graph.supersteps import walking
from tests.graph.programs import (
    PROGRAMS,
    distances,
    graphs,
    interpret,
    labels,
    levels,
    pagerank,
)

GENERATOR = np.random.default_rng(1)


@pytest.fixture(scope="module")
def engine():
    with Embedded(threads=2, processes=1) as engine:
        yield engine


def assert_same(program, found, expected):
    if np.dtype(program.value_type).kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    else:
        assert found.tolist() == expected


@pytest.mark.parametrize("push_cost", [0, 4, 10**9], ids=["push", "either", "pull"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_the_values_of_the_interpreter(name, push_cost, engine, monkeypatch):
    monkeypatch.setattr(walking, "PUSH_COST", push_cost)
    program = PROGRAMS[name]()

    @settings(max_examples=25, deadline=None)
    @given(graphs(), st.integers(1, 5), st.sampled_from(["ranges", "hash", "vertex_cut"]))
    def holds(graph, num_partitions, how):
        options = RunOptions(engine=engine, num_partitions=num_partitions, partitioning=how)
        outcome = run_program(graph, program, options)
        assert_same(program, outcome.values, interpret(graph, program))

    holds()


@pytest.mark.parametrize("make", [distances, labels], ids=["distances", "labels"])
@settings(max_examples=40, deadline=None)
@given(graph=graphs(), num_partitions=st.integers(2, 4))
def test_rounds_of_a_partition_alone_end_at_the_same_values(engine, make, graph, num_partitions):
    options = RunOptions(engine=engine, num_partitions=num_partitions)
    alone = run_program(graph, make(order_independent=True), options)
    together = run_program(graph, make(), options)
    assert alone.values.tolist() == together.values.tolist()
    assert len(alone.supersteps) <= len(together.supersteps)


def test_rounds_of_a_partition_alone_save_supersteps(engine):
    path = np.arange(400)
    graph = Graph.from_edges((path[:-1], path[1:]))
    options = RunOptions(engine=engine, num_partitions=2, partitioning="ranges")
    alone = run_program(graph, labels(order_independent=True), options)
    together = run_program(graph, labels(), options)
    assert len(alone.supersteps) < len(together.supersteps) / 4
    assert alone.values.tolist() == together.values.tolist()


def test_values_do_not_depend_on_threads_and_partitions(engine, monkeypatch):
    generator = np.random.default_rng(1)
    graph = Graph.from_edges(tuple(generator.integers(0, 20_000, (2, 100_000))))
    found = []
    for num_threads in (1, 2, 3):
        monkeypatch.setattr("talka.graph.supersteps.running.num_cores", lambda n=num_threads: n)
        outcome = run_program(graph, pagerank(), RunOptions(engine=engine))
        found.append((outcome.values.tobytes(), outcome.aggregates))
    assert found[0] == found[1] == found[2]


def test_plain_python_gives_the_same_bits(engine):
    generator = np.random.default_rng(2)
    graph = Graph.from_edges(tuple(generator.integers(0, 60, (2, 200))), np.ones(200))
    for make in PROGRAMS.values():
        plain = RunOptions(engine=engine, num_partitions=2, compiled=False)
        compiled = RunOptions(engine=engine, num_partitions=2)
        assert (
            run_program(graph, make(), plain).values.tobytes()
            == run_program(graph, make(), compiled).values.tobytes()
        )


def signed_expression(which, vertex, in_degree, out_degree, value, combined, rank):
    if which == 0:
        return in_degree - out_degree
    if which == 1:
        return -vertex
    if which == 2:
        return abs(out_degree - in_degree) + abs(vertex - 2 * value)
    if which == 3:
        return max(in_degree - out_degree, 0)
    if which == 4:
        return (vertex - 3) // 2 + (vertex - 3) % 5
    if which == 5:
        return min(value - combined, rank - value)
    if which == 6:
        return 10 * (rank - 7) - combined
    return vertex * out_degree - in_degree * 3


SIGNED = EdgeProgram(
    initial=lambda rank: rank,
    message=lambda value, vertex: max(value - vertex, vertex - value) % 100,
    combine=lambda a, b: abs(max(a - b, b - a) + min(a, b)),  # the larger one
    identity=0,
    update=lambda value: value,
    value_type=np.uint8,
    message_type=np.uint16,
    attributes={"rank": np.arange(9, dtype=np.uint16)},
    aggregates={
        "total": Aggregate(
            lambda which, vertex, in_degree, out_degree, value, old, rank: signed_expression(
                which, vertex, in_degree, out_degree, value, old, rank
            )
        )
    },
    parameters={"which": 0},
    num_supersteps=1,
)


@pytest.mark.parametrize("which", range(8))
def test_whole_numbers_are_signed_as_in_plain_python(engine, which):
    generator = np.random.default_rng(which)
    graph = Graph.from_edges(tuple(generator.integers(0, 9, (2, 30))), vertices=np.arange(9))
    incoming, outgoing = (side.tolist() for side in graph.degrees())
    total = sum(signed_expression(which, v, incoming[v], outgoing[v], v, v, v) for v in range(9))
    program = dataclasses.replace(SIGNED, parameters={"which": which})
    compiled = run_program(graph, program, RunOptions(engine=engine))
    plain = run_program(graph, program, RunOptions(engine=engine, compiled=False))
    assert compiled.aggregates == plain.aggregates == {"total": total}


def test_a_difference_of_degrees_may_be_negative(engine):
    graph = Graph.from_edges(([0, 0, 1], [1, 2, 2]))
    program = levels_like(update=lambda in_degree, out_degree: in_degree - out_degree)
    table = graph.run(program, RunOptions(engine=engine))
    assert table["value"].to_pylist() == [-2, 0, 2]


def superstep_seen_by_both(**given):
    """A value is 1,000 x (what `message` saw) + (what `update` saw) of the last superstep."""
    return EdgeProgram(
        initial=lambda: -1,
        message=lambda superstep: 1_000 * superstep,
        combine="max",
        update=lambda combined, superstep: combined + superstep,
        value_type=np.int64,
        **given,
    )


@pytest.mark.parametrize("num_partitions", [1, 2])
@pytest.mark.parametrize("how", ["hash", "vertex_cut"])
def test_update_sees_the_superstep_of_the_messages_it_receives(engine, num_partitions, how):
    options = RunOptions(engine=engine, num_partitions=num_partitions, partitioning=how)
    ring = Graph.from_edges(([0, 1, 2], [1, 2, 0]))
    first = run_program(ring, superstep_seen_by_both(num_supersteps=1), options)
    assert first.values.tolist() == [0, 0, 0]
    fifth = run_program(ring, superstep_seen_by_both(num_supersteps=5), options)
    assert fifth.values.tolist() == [4_004, 4_004, 4_004]


def test_rounds_of_a_partition_alone_are_rounds_of_one_superstep(engine):
    path = np.arange(10)
    graph = Graph.from_edges((path[:-1], path[1:]))
    program = superstep_seen_by_both(
        starts=lambda vertex, source: vertex == source,
        active=lambda old: old < 0,
        parameters={"source": graph.number_of(0)},
        order_independent=True,
    )
    options = RunOptions(engine=engine, num_partitions=2, partitioning="ranges")
    found = run_program(graph, program, options)
    reached = found.values[found.values >= 0]
    assert len(reached) == 9
    assert (reached // 1_000 == reached % 1_000).all()
    assert 0 in reached


def test_division_by_zero_and_overflow_are_as_the_page_says(engine):
    graph = Graph.from_edges(([0, 1], [1, 0]))
    whole = levels_like(update=lambda vertex: vertex // (vertex - vertex), value_type=np.int64)
    assert run_program(graph, whole, RunOptions(engine=engine)).values.tolist() == [0, 0]
    small = levels_like(update=lambda vertex: -1 - vertex, value_type=np.uint8)
    assert run_program(graph, small, RunOptions(engine=engine)).values.tolist() == [255, 254]
    for program in (whole, small):
        with pytest.raises(TaskError):
            run_program(graph, program, RunOptions(engine=engine, compiled=False))


def test_push_or_pull_is_chosen_from_counts(engine):
    generator = np.random.default_rng(3)
    graph = Graph.from_edges(tuple(generator.integers(0, 3_000, (2, 60_000))))
    done = run_program(graph, levels(), RunOptions(engine=engine)).supersteps
    assert (done[0].pushed, done[0].pulled) == (1, 0)
    assert any(one.pulled for one in done)


def test_pushed_supersteps_walk_the_same_edges_however_the_graph_is_cut(engine, monkeypatch):
    monkeypatch.setattr(walking, "PUSH_COST", 0)
    generator = np.random.default_rng(6)
    graph = Graph.from_edges(tuple(generator.integers(0, 300, (2, 2_000))))
    walked = {}
    for how in ("hash", "vertex_cut"):
        options = RunOptions(engine=engine, num_partitions=3, partitioning=how)
        done = run_program(graph, levels(), options).supersteps
        assert all(one.pulled == 0 for one in done)
        walked[how] = [one.edges for one in done]
    assert walked["hash"] == walked["vertex_cut"]
    assert sum(walked["hash"]) > 1_000


def test_what_leaves_a_partition_is_combined(engine):
    hub = Graph.from_edges((np.arange(1, 1001), np.zeros(1000, np.int64)))
    done = run_program(hub, pagerank(2), RunOptions(engine=engine, num_partitions=4)).supersteps
    assert done[0].num_messages == 3  # one from each partition that is not the hub's own
    assert done[0].sent_bytes == 3 * 8


def test_if_all_vertices_send_bytes_are_as_predicted_from_the_cut(engine):
    generator = np.random.default_rng(4)
    graph = Graph.from_edges(tuple(generator.integers(0, 500, (2, 5_000))))
    for how in ("ranges", "hash", "vertex_cut"):
        options = RunOptions(engine=engine, num_partitions=5, partitioning=how)
        done = run_program(graph, pagerank(3), options).supersteps
        predicted = graph.cut(5, how).report.superstep_bytes
        assert [one.sent_bytes for one in done] == [predicted, predicted, predicted, 0]


def test_until_ends_a_program(engine):
    generator = np.random.default_rng(5)
    graph = Graph.from_edges(tuple(generator.integers(0, 100, (2, 1_000))))
    ends = dataclasses.replace(pagerank(1_000), until=lambda totals: totals["change"] < 1e-8)
    outcome = run_program(graph, ends, RunOptions(engine=engine))
    assert outcome.aggregates["change"] < 1e-8
    assert 3 < len(outcome.supersteps) < 100


def test_a_program_that_never_halts_is_an_error_with_the_number_of_active_vertices(engine):
    def swing(value, combined):
        return 1 - value

    program = EdgeProgram(
        initial=lambda vertex: 0,
        message=lambda value: 1,
        combine="max",
        update=swing,
        active=lambda old, value: True,
    )
    graph = Graph.from_edges(([1, 2, 3], [2, 3, 1]))
    with pytest.raises(NeverHaltsError, match="after 7 supersteps 3 vertices were still active"):
        run_program(graph, program, RunOptions(engine=engine, max_supersteps=7))


@pytest.mark.parametrize("num_partitions", [1, 3])
def test_graphs_without_edges_or_vertices(engine, num_partitions):
    options = RunOptions(engine=engine, num_partitions=num_partitions)
    empty = Graph.from_edges(([], []))
    alone = Graph.from_edges(([], []), vertices=[7])
    assert run_program(empty, pagerank(), options).values.tolist() == []
    assert run_program(alone, pagerank(), options).values.tolist() == [pytest.approx(1)]
    assert run_program(alone, labels(), options).values.tolist() == [0]


def test_functions_may_use_constants_modules_and_each_other():
    import math

    factor = 3

    def helper(x):
        return math.sqrt(x) * factor

    program = EdgeProgram(
        initial=lambda vertex: vertex + 1.0,
        message=lambda value: helper(value),
        combine="sum",
        update=lambda combined: np.floor(combined),
        num_supersteps=1,
    )
    graph = Graph.from_edges(([0, 1], [1, 2]))
    assert run_program(graph, program, RunOptions()).values.tolist() == interpret(graph, program)


def test_two_lambdas_on_one_line_are_told_apart():
    program = EdgeProgram(initial=lambda vertex: vertex, message=lambda value: value * 2, combine="sum", update=lambda combined: combined, num_supersteps=1)  # fmt: skip
    graph = Graph.from_edges(([0, 1], [1, 2]))
    assert run_program(graph, program, RunOptions()).values.tolist() == interpret(graph, program)


def _imports(value):
    from numpy import random as chance

    return value + chance.random()


def _drawn():
    return np.random.random()


RANDOM = {
    "numpy.random": lambda value: value + np.random.random(),
    "a function of numpy.random": lambda value: value + normal(),
    "random": lambda value: value + random.random(),
    "a function of random": lambda value: value + shuffled(),
    "a generator": lambda value: value + GENERATOR.random(),
    "a helper": lambda value: value + _drawn(),
    "an import": _imports,
    "a part of numpy.random": lambda value: value + np.random.default_rng(1).random(),
}


class TestFormerNames:
    def test_a_former_keyword_still_works_with_a_warning(self):
        with pytest.warns(DeprecationWarning, match="'nothing' is now called 'identity'"):
            program = levels_like(combine=lambda a, b: max(a, b), nothing=-1)
        assert program.identity == -1
        with pytest.warns(DeprecationWarning, match="now called 'order_independent'"):
            assert levels_like(asynchronous_ok=True).order_independent

    def test_a_former_attribute_still_works_with_a_warning(self):
        program = levels_like(combine=lambda a, b: max(a, b), identity=-1)
        with pytest.warns(DeprecationWarning, match="'nothing' is now called 'identity'"):
            assert program.nothing == -1
        with pytest.warns(DeprecationWarning, match="now called 'order_independent'"):
            assert not program.asynchronous_ok

    def test_both_names_at_once_are_refused(self):
        with pytest.raises(TypeError, match="'nothing', the former name of 'identity'"):
            levels_like(nothing=0, identity=0)


class TestErrors:
    def test_a_function_that_numba_cannot_compile_is_named_with_its_line(self):
        def broken(value, combined):
            found = [value]
            return found.nonsense + combined

        program = EdgeProgram(
            initial=lambda vertex: 0,
            message=lambda value: value,
            combine="sum",
            update=broken,
            num_supersteps=1,
        )
        line = broken.__code__.co_firstlineno + 2
        graph = Graph.from_edges(([0], [1]))
        with pytest.raises(ProgramError, match=rf"`update` \(.*:{line}\).*nonsense") as caught:
            run_program(graph, program, RunOptions())
        assert "\n" not in str(caught.value)

    def test_an_unknown_parameter(self):
        with pytest.raises(ProgramError, match="`message`.*'wait'; it may take in_degree, num"):
            levels_like(message=lambda wait: wait)

    def test_a_constant_that_is_not_a_number(self):
        text = "far"
        with pytest.raises(ProgramError, match="uses `text`, which is of type str"):
            levels_like(message=lambda value: len(text) + value)

    def test_a_function_that_calls_itself(self):
        with pytest.raises(ProgramError, match=r"program's `message` \(.*calls itself"):
            levels_like(message=_endless)

    @pytest.mark.parametrize("name", RANDOM)
    def test_random_numbers_are_refused_because_a_replay_would_differ(self, name):
        with pytest.raises(ProgramError, match="`message`.*draws random numbers.*repeated after"):
            levels_like(message=RANDOM[name])

    def test_a_name_that_only_sounds_random_is_allowed(self):
        shuffled = 3
        levels_like(message=lambda value: value + shuffled)

    def test_an_unknown_combine(self):
        with pytest.raises(InvalidValueError, match="combine is 'mean', but must be one of sum"):
            levels_like(combine="mean")
        with pytest.raises(InvalidValueError, match="identity is None, but must be a number"):
            levels_like(combine=lambda a, b: a * b)

    def test_a_program_without_an_end(self):
        with pytest.raises(InvalidValueError, match="never ends"):
            levels_like(num_supersteps=None)

    def test_names_that_are_taken(self):
        with pytest.raises(InvalidValueError, match="'value'"):
            levels_like(parameters={"value": 1})
        with pytest.raises(InvalidValueError, match="'x'"):
            levels_like(parameters={"x": 1}, aggregates={"x": Aggregate(lambda value: value)})

    def test_attributes_of_another_length(self):
        program = levels_like(attributes={"heights": np.ones(3)})
        with pytest.raises(InvalidValueError, match="2 vertices"):
            run_program(Graph.from_edges(([0], [1])), program, RunOptions())

    def test_weights_that_are_not_there(self):
        with pytest.raises(InvalidValueError, match="weights"):
            run_program(Graph.from_edges(([0], [1])), distances(), RunOptions())


def _endless(value):
    return _endless(value - 1)


def levels_like(**given):
    fields = {
        "initial": lambda vertex: 0,
        "message": lambda value: value,
        "combine": "sum",
        "update": lambda combined: combined,
        "num_supersteps": 1,
    }
    return EdgeProgram(**{**fields, **given})
