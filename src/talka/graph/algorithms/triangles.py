"""Number of triangles at each vertex, and in the whole graph."""

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from talka.graph.algorithms.closing import Closing
from talka.graph.graph import GraphData
from talka.graph.kernels.triangles import triangles as closed
from talka.graph.programs.step import Step
from talka.graph.programs.vertex_program import VertexProgram
from talka.graph.supersteps.running import Outcome, RunOptions, run_program

if TYPE_CHECKING:
    import pyarrow as pa


def triangles(graph: GraphData, *, options: RunOptions | None = None) -> "pa.Table":
    """Return the number of triangles at each vertex, without directions, duplicates and loops."""
    return graph.table(_counted(graph, options).values)


def num_triangles(graph: GraphData, *, options: RunOptions | None = None) -> int:
    """Return the number of triangles in the graph."""
    return int(_counted(graph, options).values.sum()) // 3


def _counted(graph: GraphData, options: RunOptions | None) -> Outcome[GraphData]:
    options = options or RunOptions()
    is_whole = options.num_partitions == 1
    program = Triangles() if is_whole else Closing(by_direction=False)
    return run_program(graph, program, options)


class Triangles(VertexProgram):
    """Triangle counts on a graph with one partition; `Closing` is for several."""

    columns: ClassVar = {"value": np.int64}

    def compute(self, step: Step) -> None:
        step["value"] = closed(step.partition.out, step.partition.into, step.num_threads)
        step.vote_to_halt()
