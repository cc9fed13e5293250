"""Strongly connected components: who can be reached, and can come back.

    trim      who has no edge in, or none out, is alone; then who has none left, and so on
    colour    the smallest number that reaches a vertex is its colour
    return    from the vertex that gave a colour, backwards over its colour: a component

until everybody is in one (Orzan, 2004). Numbers descend by degree: a hub gives the first colours,
so the giant component is found in the first round.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from talka.graph.algorithms.answers import table_of_ids, to_the_end
from talka.graph.kernels.components import smallest_in_trees
from talka.graph.programs.edge_program import EdgeProgram
from talka.graph.supersteps.running import RunOptions, run_program

if TYPE_CHECKING:
    import pyarrow as pa

    from talka.graph.graph import Graph


def strong_components(graph: "Graph", *, options: RunOptions | None = None) -> "pa.Table":
    """The smallest id in the strongly connected component of each vertex."""
    # Each run is short, and the next one depends on it: there is nothing to resume from.
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
    """Who is not left has the largest number, which says nothing."""
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
    """Along an edge colours do not grow: backwards none is above the vertex's own, if that comes."""
    return EdgeProgram(
        initial=lambda vertex, colour: 1 if vertex == colour else 0,
        message=lambda colour: colour,
        combine="max",
        update=lambda value, combined, colour: 1 if combined == colour else value,
        active=lambda old, value: value > old,
        starts=lambda value: value == 1,
        value_type=np.uint8,
        message_type=np.int64,  # the smallest of a type says nothing, and 0 is a colour
        attributes={"colour": colours},
        order_independent=True,
    )


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
