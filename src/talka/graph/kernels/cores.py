"""Core numbers: the largest k such that a vertex is in a subgraph with all degrees k or more.

In one piece by peeling: take away a vertex of least degree, again and again; its degree then is its
core number. Vertices stand in buckets by degree, and one that loses a neighbour swaps places with
the first of its bucket, so all is linear (Batagelj and Zaversnik, 2003).

Across partitions each peels its own vertices, with its mirrors held at what is known of them, tells
what it found, and begins again, until nothing changes. Values come down from degrees and stop where
each is the h-index of its neighbours' values: at core numbers (Lu, Zhou, Zhang and Stanley, Nature
Communications, 2016).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from talka.compiled import compiled
from talka.graph.csr import Csr
from talka.graph.kernels.simple import neighbours


def cores(out: Csr, into: Csr, num_threads: int) -> NDArray[np.uint32]:
    """The core number of each vertex. Directions, copies of an edge and self-loops do not count.

    `into is out` says that the graph is undirected.
    """
    around = neighbours(out, into, num_threads)
    return peel(around.offsets, around.members, around.lengths())


def peel(
    offsets: NDArray[Any], members: NDArray[np.uint32], degrees: NDArray[Any]
) -> NDArray[np.uint32]:
    """What is left of each degree when vertices go, least first, and their neighbours lose one.

    A vertex that is in no row keeps what it was given, and goes when the others have come down to
    that: so a partition holds its mirrors at the values that it was told.
    """
    left = degrees.astype(np.uint32)
    _peel(offsets, members, left)
    return left


@compiled
def _peel(offsets: Any, members: Any, degrees: Any) -> None:
    """Turn degrees into core numbers, in place."""
    num_vertices = len(degrees)
    one = np.uint32(1)
    starts = np.zeros(np.int64(degrees.max()) + 2 if num_vertices else 1, np.uint32)
    for degree in degrees:
        starts[degree + one] += one
    for degree in range(1, len(starts)):
        starts[degree] += starts[degree - 1]
    order = np.empty(num_vertices, np.uint32)  # vertices by degree
    places = np.empty(num_vertices, np.uint32)  # of each vertex in `order`
    free = starts.copy()
    for vertex in range(num_vertices):
        places[vertex] = free[degrees[vertex]]
        order[places[vertex]] = vertex
        free[degrees[vertex]] += one
    for place in range(num_vertices):
        vertex = order[place]
        degree = degrees[vertex]
        for entry in range(offsets[vertex], offsets[vertex + one]):
            other = members[entry]
            if degrees[other] > degree:
                # The first of its bucket takes its place, and the bucket begins behind it.
                begin = starts[degrees[other]]
                first, at = order[begin], places[other]
                order[at], order[begin] = first, other
                places[first], places[other] = at, begin
                starts[degrees[other]] += one
                degrees[other] -= one
