"""Graphs: think like a vertex, run like compiled code."""

from talka.graph.graph import Graph
from talka.graph.program import Aggregate, EdgeProgram
from talka.graph.running import Outcome, RunOptions, run_program
from talka.graph.step import Step
from talka.graph.vertex_program import VertexProgram

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
