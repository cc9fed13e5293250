"""Triangles at each vertex, and in all."""

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
    """How many triangles each vertex is part of; directions, copies and loops do not count."""
    return graph.table(_counted(graph, options).values)


def num_triangles(graph: GraphData, *, options: RunOptions | None = None) -> int:
    """How many triangles there are."""
    return int(_counted(graph, options).values.sum()) // 3


def _counted(graph: GraphData, options: RunOptions | None) -> Outcome[GraphData]:
    options = options or RunOptions()
    alone = options.num_partitions == 1
    program = Triangles() if alone else Closing(by_direction=False)
    return run_program(graph, program, options)


class Triangles(VertexProgram):
    """In one piece; `Closing` in several."""

    columns: ClassVar = {"value": np.int64}

    def compute(self, step: Step) -> None:
        step["value"] = closed(step.partition.out, step.partition.into, step.num_threads)
        step.vote_to_halt()
