"""Core numbers: the largest k for which a vertex is in a part of the graph with all degrees k or more.

In one piece by peeling. Across partitions each peels its own vertices between what it was told of
others; values come down from degrees to core numbers (`kernels/cores.py`).
"""

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from talka.graph.algorithms.answers import to_the_end
from talka.graph.algorithms.spreading import INDICES, MESSAGE, gathered, spread
from talka.graph.graph import GraphData
from talka.graph.kernels.cores import cores as peeled
from talka.graph.kernels.cores import peel
from talka.graph.programs.step import Step
from talka.graph.programs.vertex_program import VertexProgram
from talka.graph.supersteps.running import RunOptions, run_program

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa


def cores(graph: GraphData, *, options: RunOptions | None = None) -> "pa.Table":
    """The core number of each vertex; directions, copies of an edge and loops do not count."""
    options = to_the_end(graph, options)
    whole = graph if options.num_partitions == 1 else graph.simple()
    return graph.table(run_program(whole, Cores(), options).values.astype(np.int64))


class Cores(VertexProgram):
    """Over any graph in one piece, over a simple one in several."""

    columns: ClassVar = {"core": np.uint32}
    message_type = MESSAGE
    indices: ClassVar = INDICES
    aggregates: ClassVar = {"is_new": "any"}

    def compute(self, step: Step) -> None:
        partition, before = step.partition, step["core"]
        if partition.num_partitions == 1:
            step["core"] = peeled(partition.out, partition.into, step.num_threads)
            step.vote_to_halt()
            return
        step["core"] = partition.out_degrees
        if step.superstep > 0:  # own neighbours of each slot, of mirrors too, lose one with it
            told = gathered(step, partition.out_degrees)
            step["core"] = peel(partition.into.offsets, partition.into.columns, told)[
                : partition.num_own
            ]
        step.aggregate("is_new", bool((step["core"] != before).any()))
        spread(step, step["core"])

    def until(self, aggregates: "Mapping[str, Any]") -> bool:
        return not aggregates["is_new"]
