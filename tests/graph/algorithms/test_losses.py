"""Every algorithm with a partition lost in any superstep: the same bits as without a loss."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.graph import Graph, RunOptions
from talka.graph.algorithms import ALGORITHMS
from tests.graph.losing import NUM_PARTITIONS, Losing

PROGRAMS = [name for name, algorithm in ALGORITHMS.items() if algorithm.runs_program]
_random = np.random.default_rng(7)
GRAPH = Graph.from_edges(tuple(_random.integers(0, 50, (2, 170))), _random.integers(1, 9, 170))


def answer(name, engine, **given):
    options = RunOptions(engine=engine, num_partitions=NUM_PARTITIONS, partitioning="hash", **given)
    algorithm = ALGORITHMS[name]
    arguments = (3,) if algorithm.needs_source else ()
    return algorithm.function(GRAPH, *arguments, options=options)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loss_in_any_superstep_changes_no_bit(name, embedded):
    expected = answer(name, embedded)
    hit = []

    @settings(max_examples=12, deadline=None)
    @given(
        superstep=st.integers(0, 9),
        partition=st.integers(0, NUM_PARTITIONS - 1),
        every=st.sampled_from([None, 1, 2]),
    )
    def holds(superstep, partition, every):
        with Losing(superstep, partition, threads=2) as engine:
            assert answer(name, engine, checkpoint_every=every).equals(expected)
            hit.append(engine.num_lost)

    holds()
    assert any(hit), "nothing was lost in any example"
