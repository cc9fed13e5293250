"""Core numbers: the largest k such that a vertex is in a subgraph with all degrees k or more.

With one partition by peeling. With several, each partition peels its own vertices, given the values
that others sent; values decrease from degrees to core numbers (`kernels/cores.py`).
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
    """Return the core number of each vertex. Directions, parallel edges and loops do not count."""
    options = to_the_end(graph, options)
    whole = graph if options.num_partitions == 1 else graph.simple()
    return graph.table(run_program(whole, Cores(), options).values.astype(np.int64))


class Cores(VertexProgram):
    """Core numbers of any graph with one partition, of a simple graph with several."""

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
        if step.superstep > 0:  # removing a slot, own or mirror, takes a degree from its neighbours
            degrees = gathered(step, partition.out_degrees)
            peeled_slots = peel(partition.into.offsets, partition.into.columns, degrees)
            step["core"] = peeled_slots[: partition.num_own]
        step.aggregate("is_new", bool((step["core"] != before).any()))
        spread(step, step["core"])

    def until(self, aggregates: "Mapping[str, Any]") -> bool:
        return not aggregates["is_new"]
