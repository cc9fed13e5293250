"""Communities by label propagation: each vertex takes the most frequent label of its neighbours.

LDBC's rule (CDLP): labels are ids at first, all vertices change at once, and ties go to the
smallest label. Both directions of a directed graph count: a pair of opposite edges gives two votes.
"""

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from talka.errors import InvalidValueError
from talka.graph.algorithms.answers import by_rank, table_of_ids
from talka.graph.algorithms.spreading import INDICES, MESSAGE, gathered, spread
from talka.graph.csr import Csr
from talka.graph.graph import GraphData
from talka.graph.kernels.labels import most_frequent
from talka.graph.kernels.offsets import row_offsets
from talka.graph.programs.step import Step
from talka.graph.programs.vertex_program import VertexProgram
from talka.graph.supersteps.running import RunOptions, run_program

if TYPE_CHECKING:
    import pyarrow as pa


def communities(
    graph: GraphData, num_supersteps: int = 10, *, options: RunOptions | None = None
) -> "pa.Table":
    """Return the label of each vertex, which is an id, after `num_supersteps`."""
    if num_supersteps < 0:
        raise InvalidValueError("num_supersteps", num_supersteps, "0 or more")
    options = options or RunOptions()
    whole = graph if options.num_partitions == 1 else graph.undirected()
    program = Communities(num_supersteps, loops_twice=graph.directed)
    return table_of_ids(graph, run_program(by_rank(whole), program, options).values)


class Communities(VertexProgram):
    """Label propagation on any graph with one partition, on an undirected graph with several.

    With `loops_twice` a loop counts twice: in a directed graph that was made undirected it is one
    entry, but has a vote in each direction.
    """

    columns: ClassVar = {"label": np.uint32}
    message_type = MESSAGE
    indices: ClassVar = {"label": "num_vertices", **INDICES}

    def __init__(self, num_supersteps: int, *, loops_twice: bool) -> None:
        self.num_supersteps, self.loops_twice = num_supersteps, loops_twice

    def compute(self, step: Step) -> None:
        if step.superstep == 0:
            step["label"] = step.ids
        else:
            out, into, labels = step.partition.out, step.partition.into, step["label"]
            if step.partition.num_partitions > 1:
                labels = gathered(step, labels)
                into = _loops(out) if self.loops_twice else out
            step["label"] = most_frequent(out, into, labels, step.num_vertices, step.num_threads)
        spread(step, step["label"])


def _loops(out: Csr) -> Csr:
    """Return only the entries from a vertex to itself."""
    rows = np.repeat(np.arange(out.num_rows, dtype=np.uint32), out.degrees())
    loops = rows[rows == out.columns]
    return Csr(row_offsets(np.bincount(loops, minlength=out.num_rows)), loops, None)
