"""Who is left when vertices without edges in are taken away, then those that have none now, and so on.

Nobody who goes is on a cycle: alone in a strongly connected component. Most vertices of a graph of
links are like that, and a graph without cycles is nothing else.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from talka.graph.program import EdgeProgram
from talka.graph.running import RunOptions, run_program

if TYPE_CHECKING:
    from talka.graph.graph import Graph


def keeps_edges_in(graph: "Graph", options: RunOptions) -> NDArray[np.bool_]:
    """Whether each vertex stays, by number. The value is how many edges in are left to it."""
    program = EdgeProgram(
        initial=lambda in_degree: in_degree,
        message=lambda: 1,
        combine="sum",
        update=lambda value, combined: value - combined,
        active=lambda value: value == 0,
        starts=lambda value: value == 0,
        value_type=np.int64,
    )
    return run_program(graph, program, options).values > 0
