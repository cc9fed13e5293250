"""Core numbers: the largest k such that a vertex is in a subgraph with all degrees k or more.

In one piece by peeling: take away a vertex of least degree, again and again; its degree then is its
core number. Vertices stand in buckets by degree, and one that loses a neighbour swaps places with
the first of its bucket, so all is linear (Batagelj and Zaversnik, 2003).

Across partitions by `h_indices`: begin with degrees, replace every value by the h-index of its
neighbours' values until nothing changes (Lu, Zhou, Zhang and Stanley, Nature Communications, 2016).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from talka.graph.csr import Csr
from talka.graph.kernels.compiled import compiled
from talka.graph.kernels.simple import neighbours
from talka.graph.kernels.threads import balanced_cuts, over_ranges


def cores(out: Csr, into: Csr, num_threads: int) -> NDArray[np.uint32]:
    """The core number of each vertex. Directions, copies of an edge and self-loops do not count.

    `into is out` says that the graph is undirected.
    """
    around = neighbours(out, into, num_threads)
    numbers = around.lengths().astype(np.uint32)
    _peel(around.offsets, around.members, numbers)
    return numbers


def h_indices(
    offsets: NDArray[Any],
    columns: NDArray[np.uint32],
    values: NDArray[np.uint32],
    num_threads: int,
) -> NDArray[np.uint32]:
    """For each row the largest h such that at least h of its entries have values of h or more."""
    found = np.empty(len(offsets) - 1, np.uint32)
    cuts = balanced_cuts(offsets, num_threads)
    over_ranges(_h_indices, cuts, offsets, columns, values, found)
    return found


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


@compiled
def _h_indices(start: Any, stop: Any, offsets: Any, columns: Any, values: Any, found: Any) -> None:
    one = np.uint64(1)
    longest = np.uint64(0)
    for row in range(start, stop):
        longest = max(longest, np.uint64(offsets[row + 1] - offsets[row]))
    counts = np.zeros(longest + one, np.uint32)  # by value; beyond the length is the length
    for row in range(start, stop):
        length = np.uint64(offsets[row + 1] - offsets[row])
        for entry in range(offsets[row], offsets[row + 1]):
            counts[min(np.uint64(values[columns[entry]]), length)] += np.uint32(1)
        h, num_at_least = length, np.uint64(counts[length])
        while num_at_least < h:
            h = np.uint64(h - one)
            num_at_least = np.uint64(num_at_least + np.uint64(counts[h]))
        found[row] = np.uint32(h)
        counts[: length + one] = 0
