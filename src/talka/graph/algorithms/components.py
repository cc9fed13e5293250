"""Weakly connected components: vertices that are connected if edges have no direction.

With one partition by Afforest (`kernels/components.py`). With several, each partition first unites
vertices along its edges into trees. From then on a tree has one label; smaller labels that arrive
replace it, and only changes are sent: at most one label per mirror and superstep.
"""

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from talka.graph.algorithms.answers import by_rank, table_of_ids, to_the_end
from talka.graph.graph import GraphData
from talka.graph.kernels.components import (
    components as united,
)
from talka.graph.kernels.components import flatten, forest, smallest_in_trees, unite_rows
from talka.graph.partitions.partition import Partition
from talka.graph.programs.step import Step
from talka.graph.programs.vertex_program import VertexProgram
from talka.graph.supersteps.running import RunOptions, run_program

if TYPE_CHECKING:
    import pyarrow as pa


def components(graph: GraphData, *, options: RunOptions | None = None) -> "pa.Table":
    """Return the smallest id in the weakly connected component of each vertex."""
    options = to_the_end(graph, options)
    whole = graph if options.num_partitions == 1 else graph.undirected()
    return table_of_ids(graph, run_program(by_rank(whole), Components(), options).values)


class Components(VertexProgram):
    """Propagation of the smallest id; `tree` is the place of the root of a vertex's local tree."""

    columns: ClassVar = {"label": np.uint32, "tree": np.uint32}
    combine = "min"
    message_type = np.uint32
    indices: ClassVar = {"tree": "num_own", "label": "num_vertices", "message": "num_vertices"}

    def compute(self, step: Step) -> None:
        partition, labels = step.partition, step["label"]
        step.vote_to_halt()
        if step.superstep == 0:
            labels, step["tree"] = step.ids.astype(np.uint32), _trees(partition, step.num_threads)
        smallest = smallest_in_trees(step["tree"], np.minimum(labels, step.combined))
        is_new = smallest < labels if step.superstep else np.ones(partition.num_own, np.bool_)
        step["label"] = smallest
        # A mirror is in the tree of any own vertex that has an edge to it.
        mirrors = partition.into.columns[partition.into.offsets[partition.num_own : -1]]
        is_sent = is_new[mirrors]
        step.send(partition.target_mirrors[is_sent], smallest[mirrors[is_sent]])


def _trees(partition: Partition, num_threads: int) -> NDArray[np.uint32]:
    """Return the root of each own vertex. Own slots come first, so every root is an own vertex."""
    if partition.num_partitions == 1:
        return united(partition.out, partition.into, num_threads)
    parents = forest(len(partition.target_numbers))
    unite_rows(parents, partition.out, forest(partition.num_own), num_threads)
    flatten(parents)
    return parents[: partition.num_own]
