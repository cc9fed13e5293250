"""Graphs: think like a vertex, run like compiled code."""

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
