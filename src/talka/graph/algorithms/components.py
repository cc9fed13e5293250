"""Weakly connected components: who can be reached when edges have no direction.

In one piece by Afforest (`kernels/components.py`). Across partitions every one unites its own
edges first; then a tree is a single thing that learns of smaller labels and passes them on, and
nothing travels but changes: at most one label for each mirror.
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
    """The smallest id in the weakly connected component of each vertex."""
    options = to_the_end(graph, options)
    whole = graph if options.num_partitions == 1 else graph.undirected()
    return table_of_ids(graph, run_program(by_rank(whole), Components(), options).values)


class Components(VertexProgram):
    """Labels are ids, the smallest wins; `tree` is a place that all of a local tree agree on."""

    columns: ClassVar = {"label": np.uint32, "tree": np.uint32}
    combine = "min"
    message_type = np.uint32
    indices: ClassVar = {"tree": "num_own", "label": "num_vertices", "message": "num_vertices"}

    def compute(self, step: Step) -> None:
        partition, labels = step.partition, step["label"]
        step.vote_to_halt()
        if step.superstep == 0:
            labels, step["tree"] = step.ids.astype(np.uint32), _trees(partition, step.num_threads)
        found = smallest_in_trees(step["tree"], np.minimum(labels, step.combined))
        is_new = found < labels if step.superstep else np.ones(partition.num_own, np.bool_)
        step["label"] = found
        # A mirror is in the tree of any own vertex that has an edge to it.
        mirrors = partition.into.columns[partition.into.offsets[partition.num_own : -1]]
        told = is_new[mirrors]
        step.send(partition.target_mirrors[told], found[mirrors[told]])


def _trees(partition: Partition, num_threads: int) -> NDArray[np.uint32]:
    """Roots of own vertices; own slots come first, so a root is an own vertex itself."""
    if partition.num_partitions == 1:
        return united(partition.out, partition.into, num_threads)
    parents = forest(len(partition.target_numbers))
    unite_rows(parents, partition.out, forest(partition.num_own), num_threads)
    flatten(parents)
    return parents[: partition.num_own]
