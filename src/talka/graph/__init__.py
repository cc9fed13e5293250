"""Graphs: programs are written per vertex and edge, and run as compiled code on partitions.

The words around one superstep, from what a user writes to what the driver reads:

    EdgeProgram         functions per edge and vertex, compiled; VertexProgram: arrays per partition
    Step                the interface of `VertexProgram.compute` to one partition in one superstep
    EdgeSuperstep, VertexSuperstep   the work of one partition in one superstep, without an engine
    Stepper             submits that work as tasks; EdgeStepper and VertexStepper, one per program
    Context             input of all tasks of a superstep: its number, aggregates, number of threads
    Report              counts of one partition in one superstep, and its part of the aggregates
    PartitionOutputs    outputs of the tasks of one partition: reports, state, mail per partition
    Supersteps          the loop of the driver: submit, read reports, stop or checkpoint, repeat

The words for "which vertex":

    id        the user's name of a vertex, an integer or a string; its rank is its place among all
    number    0 to num_vertices - 1 in the whole graph, by descending degree, so hubs come first
    place     index of a vertex among those that a partition owns (`Partition.own`, by number)
    slot      row or column of the edges of a partition: owned vertices by place, then mirrors
    mirror    a slot for a vertex that another partition owns; source and target mirrors differ
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from talka.graph.api import Graph
    from talka.graph.programs.edge_program import Aggregate, EdgeProgram
    from talka.graph.programs.step import Step
    from talka.graph.programs.vertex_program import VertexProgram
    from talka.graph.supersteps.running import Outcome, RunOptions, run_program

__all__ = [
    "Aggregate",
    "EdgeProgram",
    "Graph",
    "Outcome",
    "RunOptions",
    "Step",
    "VertexProgram",
    "run_program",
]

_HOMES = {
    "Aggregate": "programs.edge_program",
    "EdgeProgram": "programs.edge_program",
    "Graph": "api",
    "Outcome": "supersteps.running",
    "RunOptions": "supersteps.running",
    "Step": "programs.step",
    "VertexProgram": "programs.vertex_program",
    "run_program": "supersteps.running",
}


def __getattr__(name: str) -> Any:
    """Import a name at its first use, as numba and pyarrow are slow to import."""
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"talka.graph.{_HOMES[name]}"), name)
