"""Core numbers: the largest k such that a vertex is in a subgraph with all degrees k or more.

With one partition by peeling: remove a vertex of least degree, again and again; its degree at that
moment is its core number. Linear in the edges (Batagelj and Zaversnik, 2003).

With several partitions, each peels its own vertices while mirrors keep the values that their
owners sent, sends its results, and repeats, until no value changes. Values decrease from degrees
until each is the h-index of its neighbours' values; these are the core numbers (Lu, Zhou, Zhang and
Stanley, Nature Communications, 2016).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from talka.compiled import compiled
from talka.graph.csr import Csr
from talka.graph.kernels.simple import neighbours


def cores(out: Csr, into: Csr, num_threads: int) -> NDArray[np.uint32]:
    """Return the core number of each vertex. Directions, parallel edges and loops do not count.

    For an undirected graph `into is out`.
    """
    around = neighbours(out, into, num_threads)
    return peel(around.offsets, around.members, around.lengths())


def peel(
    offsets: NDArray[Any], members: NDArray[np.uint32], degrees: NDArray[Any]
) -> NDArray[np.uint32]:
    """Return the degree of each vertex at its removal, if vertices of least degree go first.

    A vertex that is a member of no row keeps its degree until it is removed. In a partition these
    are the mirrors, which keep the values that their owners sent.
    """
    remaining = degrees.astype(np.uint32)
    _peel(offsets, members, remaining)
    return remaining


@compiled
def _peel(offsets: Any, members: Any, degrees: Any) -> None:
    """Turn degrees into core numbers, in place."""
    # Counting sort: `order` has vertices by degree, and `starts[d]` is the first place in it of the
    # bucket of degree d. `places` is the inverse of `order`.
    num_vertices = len(degrees)
    one = np.uint32(1)
    starts = np.zeros(np.int64(degrees.max()) + 2 if num_vertices else 1, np.uint32)
    for degree in degrees:
        starts[degree + one] += one
    for degree in range(1, len(starts)):
        starts[degree] += starts[degree - 1]
    order = np.empty(num_vertices, np.uint32)
    places = np.empty(num_vertices, np.uint32)
    free = starts.copy()
    for vertex in range(num_vertices):
        places[vertex] = free[degrees[vertex]]
        order[places[vertex]] = vertex
        free[degrees[vertex]] += one
    # Remove vertices in order. A neighbour of greater degree moves to the bucket below in constant
    # time: it swaps places with the first vertex of its bucket, whose start then moves behind it.
    # Each edge is read once per end, and nothing is sorted again.
    for place in range(num_vertices):
        vertex = order[place]
        degree = degrees[vertex]
        for entry in range(offsets[vertex], offsets[vertex + one]):
            other = members[entry]
            if degrees[other] > degree:
                begin = starts[degrees[other]]
                first, at = order[begin], places[other]
                order[at], order[begin] = first, other
                places[first], places[other] = at, begin
                starts[degrees[other]] += one
                degrees[other] -= one
