"""Strongly connected components: sets of vertices that can all reach each other.

    trim      a vertex without in-edges or out-edges is a component; remove it, and repeat
    colour    the colour of a vertex is the smallest number that reaches it
    return    vertices reached backwards from that number, within its colour, are a component

The last two are repeated until every vertex is in a component (Orzan, 2004). Small numbers have the
greatest degrees, so a hub gives the first colour and the giant component is found in round one.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from talka.graph.algorithms.answers import table_of_ids, to_the_end
from talka.graph.graph import GraphData
from talka.graph.kernels.components import smallest_in_trees
from talka.graph.programs.edge_program import EdgeProgram
from talka.graph.supersteps.running import RunOptions, run_program

if TYPE_CHECKING:
    import pyarrow as pa


def strong_components(graph: GraphData, *, options: RunOptions | None = None) -> "pa.Table":
    """Return the smallest id in the strongly connected component of each vertex."""
    # Each run is short, and the next one depends on its result, so checkpoints would not help.
    options = replace(to_the_end(graph, options), checkpoint_dir=None, resume=False)
    backward = graph.reversed()
    is_left = keeps_edges_in(graph, options) & keeps_edges_in(backward, options)
    roots = np.arange(graph.num_vertices, dtype=np.uint32)
    while is_left.any():
        colours = run_program(graph, _colour(is_left), options).values
        is_back = run_program(backward, _return(colours), options).values == 1
        roots[is_back] = colours[is_back]
        is_left &= ~is_back
    return table_of_ids(graph, smallest_in_trees(roots, graph.ids.ranks))


def _colour(is_left: NDArray[np.bool_]) -> EdgeProgram:
    """Return the program that spreads smallest numbers over vertices that are left.

    Other vertices have the largest number, which is the identity of "min": they send no message.
    """
    return EdgeProgram(
        initial=lambda vertex, is_left: vertex if is_left else 2**32 - 1,
        message=lambda value: value,
        combine="min",
        update=lambda value, combined, is_left: min(value, combined) if is_left else value,
        active=lambda old, value: value < old,
        value_type=np.uint32,
        attributes={"is_left": is_left},
        order_independent=True,
    )


def _return(colours: NDArray[np.uint32]) -> EdgeProgram:
    """Return the program that marks vertices which reach the root of their colour.

    Colours do not increase along an edge. Backwards, no colour that arrives is therefore greater
    than that of the vertex, and the maximum equals it if it arrives at all.
    """
    return EdgeProgram(
        initial=lambda vertex, colour: 1 if vertex == colour else 0,
        message=lambda colour: colour,
        combine="max",
        update=lambda value, combined, colour: 1 if combined == colour else value,
        active=lambda old, value: value > old,
        starts=lambda value: value == 1,
        value_type=np.uint8,
        message_type=np.int64,  # as uint32 the identity of "max" would be 0, which is a colour
        attributes={"colour": colours},
        order_independent=True,
    )


def keeps_edges_in(graph: GraphData, options: RunOptions) -> NDArray[np.bool_]:
    """Return, by number, whether a vertex still has in-edges after trimming.

    The value of a vertex is the number of in-edges that are left.
    """
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
