"""Triangle counts and local clustering coefficients.

A triangle w < u < v is found once, at u: mark the members of u's forward list; then, for every v
that has u in its forward list, read that list up to u and count the members w that are marked.
Small numbers have the greatest degrees, so forward lists are short, and the marks, a byte for each
number below u, are in the cache where most of the work is: at hubs. The work is half the sum of
squared lengths of forward lists, at most of order edges^1.5. (The forward algorithm of Schank and
Wagner, "Finding, counting and listing all triangles in large graphs", 2005, with marks instead of
merges.)

With several partitions, the owner of v sends its forward list once to each partition that owns a
member u. That partition calls `count_closing` and sends counts back to the owners of vertices.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from talka.compiled import compiled
from talka.graph.csr import Csr
from talka.graph.kernels.offsets import row_offsets
from talka.graph.kernels.ordering import order_by, present
from talka.graph.kernels.simple import Neighbours, backward_neighbours, forward_neighbours
from talka.graph.kernels.threads import balanced_cuts, over_ranges


def triangles(out: Csr, into: Csr, num_threads: int) -> NDArray[np.int64]:
    """Return the number of triangles at each vertex; the sum is three times their number.

    Directions, parallel edges and loops do not count. For an undirected graph `into is out`. The
    result is right for any order of vertices, but fast only if degrees descend.
    """
    lists = forward_neighbours(out, into, num_threads)
    lists.ways.fill(1)
    return _close_all(lists, backward_neighbours(out, into, num_threads), num_threads)


def clustering(out: Csr, into: Csr, num_threads: int) -> NDArray[np.float64]:
    """Return the fraction of possible edges between the neighbours of a vertex that exist.

    LDBC's local clustering coefficient: in- and out-neighbours both count, and an edge between two
    of them counts once for each direction it has. 0 for a vertex with fewer than two neighbours.
    """
    lists = forward_neighbours(out, into, num_threads)
    backward = backward_neighbours(out, into, num_threads)
    if into is out:
        lists.ways.fill(2)
    num_edges = _close_all(lists, backward, num_threads)
    degrees = lists.lengths() + backward.lengths()
    possible = degrees.astype(np.float64) * (degrees - 1)
    return np.divide(num_edges, possible, out=np.zeros(out.num_rows), where=degrees > 1)


def count_closing(
    own: NDArray[np.uint32],
    lists: Neighbours,
    asked_vertices: NDArray[np.uint32],
    asked: Neighbours,
    num_vertices: int,
) -> NDArray[np.int64]:
    """Count triangles of the asked forward lists whose middle vertex is in `own`; sums by number.

    `lists` are the forward lists of `own`, `asked` those of `asked_vertices`; members are numbers
    in the whole graph. If all partitions count all lists, their sums add up to the result of
    `triangles` (with ways of 1) or to the number of edges between neighbours (with real ways).
    """
    places, is_here = present(own, asked.members)
    rows = np.repeat(np.arange(len(asked_vertices), dtype=np.uint32), asked.lengths())[is_here]
    asker_offsets, order = order_by(places, len(own))
    askers = rows[order]
    sums: NDArray[np.int64] = _close(
        0, len(own), num_vertices, own, *lists, asked_vertices, *asked, asker_offsets, askers
    )
    return sums


def _close_all(lists: Neighbours, backward: Neighbours, num_threads: int) -> NDArray[np.int64]:
    vertices = np.arange(len(lists.offsets) - 1, dtype=np.uint32)
    cuts = balanced_cuts(row_offsets(_work(lists.offsets, lists.members)), num_threads)
    askers = (backward.offsets, backward.members)
    own, asked = (vertices, *lists), (vertices, *lists)
    sums = over_ranges(_close, cuts, len(vertices), *own, *asked, *askers)
    total: NDArray[np.int64] = np.sum(sums, axis=0)
    return total


@compiled
def _work(offsets: Any, members: Any) -> Any:
    """Count the entries that are read for each u."""
    work = np.zeros(len(offsets) - 1, np.int64)
    for row in range(len(offsets) - 1):
        first = offsets[row]
        for edge in range(first, offsets[row + 1]):
            work[members[edge]] += np.int64(edge - first)
    return work


@compiled
def _close(
    start: Any,
    stop: Any,
    num_vertices: Any,
    own: Any,
    list_offsets: Any,
    list_members: Any,
    list_ways: Any,
    asked_vertices: Any,
    asked_offsets: Any,
    asked_members: Any,
    asked_ways: Any,
    asker_offsets: Any,
    askers: Any,
) -> Any:
    """Close triangles w < u < v with u in own[start:stop], and return sums by vertex number.

    Each triangle adds the ways of (u, w) to v, of (v, w) to u, and of (v, u) to w. For each place
    in `own`, `askers` has the rows of asked lists that contain that vertex.
    """
    # `marks[w]` is the ways of (u, w), or 0 if w is not in the list of the current u. Marks are set
    # before and cleared after each u, entry by entry, which costs no more than reading the list.
    # `hits` collects positions of common members. Each thread has separate marks, hits and sums.
    one = np.uint64(1)
    marks = np.zeros(num_vertices, np.uint8)
    sums = np.zeros(num_vertices, np.int64)
    hits = np.empty(num_vertices, np.uint64)
    for place in range(start, stop):
        u = own[place]
        for other in range(list_offsets[place], list_offsets[place + 1]):
            marks[list_members[other]] = list_ways[other]
        # Lists ascend and contain u, so the loop below needs no other bound: members before u are
        # the candidates for w, and the entry of u itself has the ways of (v, u).
        sum_u = np.int64(0)
        for asker in range(asker_offsets[place], asker_offsets[place + 1]):
            row = askers[asker]
            entry, num_hits = np.uint64(asked_offsets[row]), np.uint64(0)
            w = asked_members[entry]
            while w < u:  # without a branch on marks, which would often be predicted wrongly
                hits[num_hits] = entry
                num_hits = np.uint64(num_hits + np.uint64(marks[w] != np.uint8(0)))
                entry = np.uint64(entry + one)
                w = asked_members[entry]
            ways_uv = np.int64(asked_ways[entry])
            sum_v = np.int64(0)
            for hit in hits[:num_hits]:
                w = asked_members[hit]
                sum_u += np.int64(asked_ways[hit])
                sum_v += np.int64(marks[w])
                sums[w] += ways_uv
            sums[asked_vertices[row]] += sum_v
        sums[u] += sum_u
        for other in range(list_offsets[place], list_offsets[place + 1]):
            marks[list_members[other]] = np.uint8(0)
    return sums
