"""Local clustering coefficients: the fraction of possible edges between neighbours that exist.

LDBC's rule (LCC): in- and out-neighbours both count as neighbours, and an edge between two of them
counts once for each direction it has.
"""

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from talka.graph.algorithms.closing import Closing
from talka.graph.graph import GraphData
from talka.graph.kernels.triangles import clustering as clustered
from talka.graph.programs.step import Step
from talka.graph.programs.vertex_program import VertexProgram
from talka.graph.supersteps.running import RunOptions, run_program

if TYPE_CHECKING:
    import pyarrow as pa


def clustering(graph: GraphData, *, options: RunOptions | None = None) -> "pa.Table":
    """Return the coefficient of each vertex, from 0 to 1; 0 if it has fewer than two neighbours."""
    options = options or RunOptions()
    if options.num_partitions == 1:
        return graph.table(run_program(graph, Clustering(), options).values)
    columns = run_program(graph, Closing(by_direction=True), options).columns
    degrees = columns["num_neighbours"]
    possible = degrees.astype(np.float64) * (degrees - 1)
    shares = np.zeros(graph.num_vertices)
    return graph.table(np.divide(columns["value"], possible, out=shares, where=degrees > 1))


class Clustering(VertexProgram):
    """Clustering coefficients on a graph with one partition; `Closing` is for several."""

    columns: ClassVar = {"value": np.float64}

    def compute(self, step: Step) -> None:
        step["value"] = clustered(step.partition.out, step.partition.into, step.num_threads)
        step.vote_to_halt()
