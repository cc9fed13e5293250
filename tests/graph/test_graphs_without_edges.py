"""Programs on graphs without edges."""

import numpy as np
import pytest

from talka.graph import EdgeProgram, Graph, RunOptions, run_program


@pytest.mark.parametrize("num_partitions", [1, 2, 5])
@pytest.mark.parametrize("num_vertices", [0, 1, 3])
def test_a_program_with_a_frontier_ends_where_there_are_no_edges(num_vertices, num_partitions):
    graph = Graph.from_edges(([], []), vertices=np.arange(num_vertices))
    program = EdgeProgram(
        initial=lambda vertex: vertex,
        message=lambda value: value,
        combine="min",
        update=lambda value, combined: min(value, combined),
        active=lambda old, value: value < old,
        value_type=np.int64,
    )
    options = RunOptions(num_partitions=num_partitions, max_supersteps=5)
    outcome = run_program(graph, program, options)
    assert outcome.values.tolist() == list(range(num_vertices))
