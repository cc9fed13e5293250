"""Core numbers: the largest k for which a vertex is in a part of the graph with all degrees k or more.

In one piece by peeling. Across partitions by h-indices, which shrink from degrees to core numbers in
any order: so a partition goes on alone until its own values stand still.
"""

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from talka.graph.algorithms.spreading import MESSAGE, gathered, spread
from talka.graph.kernels.cores import cores as peeled
from talka.graph.kernels.cores import h_indices
from talka.graph.kernels.simple import neighbours
from talka.graph.running import RunOptions, run_program
from talka.graph.step import Step
from talka.graph.vertex_program import VertexProgram

if TYPE_CHECKING:
    from collections.abc import Mapping

    from talka.graph.graph import Graph


def cores(graph: "Graph", *, options: RunOptions | None = None) -> Any:
    """The core number of each vertex; directions, copies of an edge and loops do not count."""
    options = options or RunOptions()
    whole = graph if options.num_partitions == 1 else graph.undirected()
    return graph.table(run_program(whole, Cores(), options).values.astype(np.int64))


class Cores(VertexProgram):
    """Over both directions in one piece, over an undirected graph in several."""

    columns: ClassVar = {"core": np.uint32}
    message_type = MESSAGE
    aggregates: ClassVar = {"is_new": "any"}

    def compute(self, step: Step) -> None:
        part, before = step.part, step["core"]
        if part.num_partitions == 1:
            step["core"] = peeled(part.out, part.into, step.num_threads)
            step.vote_to_halt()
            return
        if step.superstep == 0:
            step["core"] = neighbours(part.out, part.out, step.num_threads).lengths()
        else:
            step["core"] = _settled(step, gathered(step, before))
        step.aggregate("is_new", bool((step["core"] != before).any()))
        spread(step, step["core"])

    def until(self, aggregates: "Mapping[str, Any]") -> bool:
        return not aggregates["is_new"]


def _settled(step: Step, values: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """h-indices of own vertices, again and again while values of mirrors stay as they are."""
    num_own = step.part.num_own
    around = neighbours(step.part.out, step.part.out, step.num_threads)
    while True:
        found = h_indices(around.offsets, around.members, values, step.num_threads)
        if np.array_equal(found, values[:num_own]):
            return found
        values[:num_own] = found
