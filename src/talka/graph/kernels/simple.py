"""Neighbours in the undirected simple graph: without directions, parallel edges and loops.

Triangles, clustering and cores are defined on this graph. Rows of both directions are ascending, so
one merge of the two gives each neighbour once.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.compiled import compiled
from talka.graph.csr import Csr
from talka.graph.kernels.offsets import row_offsets
from talka.graph.kernels.threads import balanced_cuts, over_ranges

ALL, FORWARD, BACKWARD = 0, 1, 2  # which neighbours to list


class Neighbours(NamedTuple):
    """Lists of neighbours: row v has neighbours of v, ascending."""

    offsets: NDArray[Any]
    members: NDArray[np.uint32]
    ways: NDArray[np.uint8]
    """Number of directions of each edge: 1 or 2; always 1 in an undirected graph."""

    def lengths(self) -> NDArray[np.int64]:
        """Return the number of neighbours in each row."""
        ends = self.offsets.astype(np.int64)
        return ends[1:] - ends[:-1]


def neighbours(out: Csr, into: Csr, num_threads: int) -> Neighbours:
    """Return all neighbours of each vertex. For an undirected graph `into is out`."""
    return _merged(out, into, num_threads, ALL)


def forward_neighbours(out: Csr, into: Csr, num_threads: int) -> Neighbours:
    """Return only the neighbours of smaller number, so that each edge is listed once.

    Small numbers have the greatest degrees: a hub has many neighbours, but few that are greater
    hubs, so the longest list has a length of the order of the square root of the number of edges.
    """
    return _merged(out, into, num_threads, FORWARD)


def backward_neighbours(out: Csr, into: Csr, num_threads: int) -> Neighbours:
    """Return only the neighbours of greater number: those whose forward lists have the vertex."""
    return _merged(out, into, num_threads, BACKWARD)


def _merged(out: Csr, into: Csr, num_threads: int, which: int) -> Neighbours:
    if into is out:
        into = Csr(np.zeros_like(out.offsets), np.empty(0, np.uint32), None)
    rows = (out.offsets, out.columns, into.offsets, into.columns)
    cuts = balanced_cuts(out.offsets, num_threads)
    counts = np.empty(out.num_rows, np.uint32)
    over_ranges(_count_merged, cuts, *rows, which, counts)
    offsets = row_offsets(counts)
    members = np.empty(int(offsets[-1]), np.uint32)
    ways = np.empty(len(members), np.uint8)
    over_ranges(_fill_merged, cuts, *rows, which, offsets, members, ways)
    return Neighbours(offsets, members, ways)


@compiled
def _count_merged(
    start: Any,
    stop: Any,
    out_offsets: Any,
    out_columns: Any,
    into_offsets: Any,
    into_columns: Any,
    which: Any,
    counts: Any,
) -> None:
    for row in range(start, stop):
        left = out_columns[out_offsets[row] : out_offsets[row + 1]]
        right = into_columns[into_offsets[row] : into_offsets[row + 1]]
        i, j, count = np.uint32(0), np.uint32(0), np.uint32(0)
        while True:
            member, i, j, _ = _next_merged(left, right, i, j)
            if member == _NONE or (which == FORWARD and member >= row):
                break
            if member > row or (member < row and which != BACKWARD):
                count = np.uint32(count + np.uint32(1))
        counts[row] = count


@compiled
def _fill_merged(
    start: Any,
    stop: Any,
    out_offsets: Any,
    out_columns: Any,
    into_offsets: Any,
    into_columns: Any,
    which: Any,
    offsets: Any,
    members: Any,
    ways: Any,
) -> None:
    for row in range(start, stop):
        left = out_columns[out_offsets[row] : out_offsets[row + 1]]
        right = into_columns[into_offsets[row] : into_offsets[row + 1]]
        i, j = np.uint32(0), np.uint32(0)
        at = np.uint64(offsets[row])
        while True:
            member, i, j, num_ways = _next_merged(left, right, i, j)
            if member == _NONE or (which == FORWARD and member >= row):
                break
            if member > row or (member < row and which != BACKWARD):
                members[at] = member
                ways[at] = num_ways
                at = np.uint64(at + np.uint64(1))


_NONE = np.uint32(2**32 - 1)  # not the number of a vertex: there are fewer than 2^32


@compiled
def _next_merged(left: Any, right: Any, i: Any, j: Any) -> Any:
    """Return the next member, the positions behind all of its copies, and its number of ways."""
    one = np.uint32(1)
    a = left[i] if i < len(left) else _NONE
    b = right[j] if j < len(right) else _NONE
    member = min(a, b)
    num_ways = np.uint8(0)
    if a == member:
        num_ways = np.uint8(1)
        while i < len(left) and left[i] == member:
            i = np.uint32(i + one)
    if b == member:
        num_ways = np.uint8(num_ways + np.uint8(1))
        while j < len(right) and right[j] == member:
            j = np.uint32(j + one)
    return member, i, j, num_ways
