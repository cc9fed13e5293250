"""A checkpoint belongs to one program, including the arrays that it uses."""

import pytest

from talka.errors import SavedStateError
from talka.graph import Graph, RunOptions


def test_a_checkpoint_of_another_source_is_refused(tmp_path):
    graph = Graph.from_edges(([0, 1, 2, 3], [1, 2, 3, 4]))
    graph.bfs(0, options=RunOptions(checkpoint_dir=tmp_path, checkpoint_every=1))
    again = RunOptions(checkpoint_dir=tmp_path, resume=True)
    assert graph.bfs(0, options=again)["value"].to_pylist() == [0, 1, 2, 3, 4]
    with pytest.raises(SavedStateError, match="another graph, program"):
        graph.bfs(2, options=again)
