"""Rules for the end of programs, given the reports of all partitions."""

import math

import pytest

from talka.errors import NeverHaltsError
from talka.graph import EdgeProgram, Graph, RunOptions
from talka.graph.supersteps import running
from talka.graph.supersteps.halting import HaltingRules
from talka.graph.supersteps.protocol import Report

QUIET, LOUD = Report(is_quiet=True), Report(is_quiet=False)


def rules(num_supersteps=None, max_supersteps=None, until=None, aggregates=None, master=None):
    return HaltingRules(num_supersteps, max_supersteps, until, aggregates or {}, master)


def reports(*lists):
    return [Report(totals={"x": list(values)}) for values in lists]


class TestTheEnd:
    def test_a_program_ends_when_all_partitions_are_quiet(self):
        assert rules().has_ended(0, [QUIET, QUIET], {})
        assert not rules().has_ended(9, [QUIET, LOUD], {})

    def test_a_program_ends_after_its_supersteps_even_if_vertices_send(self):
        counted = rules(num_supersteps=3)
        assert [counted.has_ended(superstep, [LOUD], {}) for superstep in range(5)] == [
            False, False, False, True, True,
        ]  # fmt: skip
        assert [counted.is_last(superstep) for superstep in (2, 3)] == [False, True]
        assert rules(num_supersteps=0).is_last(0)

    def test_without_a_number_no_superstep_is_the_last(self):
        assert not rules().is_last(10**9)

    def test_until_is_not_asked_before_the_first_update(self):
        small = rules(until=lambda totals: totals["x"] < 1)
        assert not small.has_ended(0, [LOUD], {"x": 0})
        assert small.has_ended(1, [LOUD], {"x": 0})
        assert not small.has_ended(1, [LOUD], {"x": 2})

    def test_a_limit_is_reached_but_no_limit_never_is(self):
        limited = rules(max_supersteps=7)
        assert [limited.is_too_long(superstep) for superstep in (6, 7, 8)] == [False, True, True]
        assert not rules().is_too_long(10**9)


class TestTotals:
    def total(self, combine, *values, **given):
        return rules(aggregates={"x": combine}, **given).totals(1, reports(*values))["x"]

    def test_sums_of_floats_do_not_depend_on_their_order(self):
        values = [1e16, 1.0, -1e16, 1.0]
        assert self.total("sum", values[:2], values[2:]) == 2.0
        assert self.total("sum", values[2:], values[:2]) == 2.0

    def test_sums_of_whole_numbers_are_exact(self):
        assert self.total("sum", [2**62, 1], [2**62]) == 2**63 + 1

    def test_smallest_largest_and_any(self):
        assert self.total("min", [3, 1], [2]) == 1
        assert self.total("max", [3, 1], [2]) == 3
        assert self.total("any", [False], [True]) is True
        assert self.total("any", [False], []) is False

    def test_nothing_at_all(self):
        assert self.total("sum", [], []) == 0
        assert self.total("min", []) == math.inf
        assert self.total("max", []) == -math.inf
        assert self.total(lambda a, b: a + b, []) is None

    def test_a_function_of_two_is_applied_by_the_order_of_partitions(self):
        assert self.total(lambda a, b: a + b, ["a", "b"], [], ["c"]) == "abc"

    def test_the_master_adds_names_and_may_replace_them(self):
        def master(superstep, totals):
            return {"next": superstep + totals["x"], "x": -1}

        made = rules(aggregates={"x": "sum"}, master=master).totals(5, reports([1], [2]))
        assert made == {"x": -1, "next": 8}


PATH = Graph.from_edges((list(range(19)), list(range(1, 20))), [1.0] * 19)
ENDING = {
    "bfs": lambda options: PATH.bfs(0, with_parents=True, options=options),
    "sssp": lambda options: PATH.sssp(0, options=options),
    "components": lambda options: PATH.components(options=options),
    "strong_components": lambda options: PATH.strong_components(options=options),
    "cores": lambda options: PATH.cores(options=options),
    "pagerank": lambda options: PATH.pagerank(num_supersteps=30, options=options),
}


@pytest.mark.parametrize("num_partitions", [1, 3])
@pytest.mark.parametrize("name", ENDING)
def test_algorithms_that_always_end_have_no_limit(name, num_partitions, monkeypatch):
    options = RunOptions(num_partitions=num_partitions, partitioning="hash")
    expected = ENDING[name](options)
    monkeypatch.setattr(running, "MAX_SUPERSTEPS", 2)
    assert ENDING[name](options).equals(expected)


def test_a_limit_that_was_given_holds_for_algorithms_too():
    with pytest.raises(NeverHaltsError, match="after 3 supersteps 1 vertices were still active"):
        PATH.bfs(0, options=RunOptions(max_supersteps=3))


def test_a_program_of_ones_own_is_stopped_and_told_what_to_do(monkeypatch):
    endless = EdgeProgram(
        initial=lambda: 1.0,
        message=lambda value: value,
        combine="max",
        update=lambda combined: combined,
        active=lambda value: value > 0,
    )
    ring = Graph.from_edges(([0, 1, 2], [1, 2, 0]))
    monkeypatch.setattr(running, "MAX_SUPERSTEPS", 5)
    with pytest.raises(NeverHaltsError, match="or allow more with max_supersteps"):
        ring.run(endless)
