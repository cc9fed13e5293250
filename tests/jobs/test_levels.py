"""The pilot of searches, against a search with a plain queue, and its extrapolation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.graph import Graph
from talka.jobs.graph import levels as module
from talka.jobs.graph.levels import extrapolated_levels, levels_from


def twin(edges, starts):
    """Return the set of vertices of each level."""
    levels, reached = [set(starts)], set(starts)
    while levels[-1]:
        targets = {target for source, target in edges if source in levels[-1]}
        levels.append(targets - reached)
        reached |= targets
    return levels[:-1]


def grid(side):
    ids = np.arange(side * side).reshape(side, side)
    right, down = (ids[:, :-1], ids[:, 1:]), (ids[:-1], ids[1:])
    return tuple(np.concatenate([a.ravel(), b.ravel()]) for a, b in zip(right, down, strict=True))


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=40),
    st.lists(st.integers(0, 12), min_size=1, max_size=3),
)
def test_levels_are_those_of_a_plain_search(edges, starts):
    graph = Graph.from_edges(edges, vertices=list(range(13)))
    numbers = [int(graph.number_of(start)) for start in starts]
    counted = levels_from(graph.out, numbers)
    expected = twin(edges, starts)
    assert counted.num_levels == len(expected)
    assert not counted.is_estimate
    assert counted.active_edges == tuple(
        sum(source in level for source, _ in edges) for level in expected
    )


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_a_pilot_that_ends_early_foresees_the_levels_of_a_grid(monkeypatch, share):
    graph = Graph.from_edges(grid(60), directed=False)
    corner = [int(graph.number_of(0))]
    whole = levels_from(graph.out, corner)
    assert whole.num_levels == 2 * 59 + 1
    monkeypatch.setattr(module, "_MAX_EDGES", round(share * 4 * 60 * 60))
    early = levels_from(graph.out, corner)
    assert early.is_estimate
    assert early.active_edges == whole.active_edges[: len(early.active_edges)]
    assert early.num_levels == pytest.approx(whole.num_levels, rel=0.35)


def test_a_pilot_that_ends_at_once_expects_at_least_one_more_level():
    assert extrapolated_levels([], 100) == 1
    assert extrapolated_levels([1], 100) == 2
    assert extrapolated_levels([1, 1, 1, 1], 100) == 100
