"""Triangles, and how tightly the neighbours of a vertex are knit.

A triangle w < u < v is found once, at u: mark the forward list of u; every v that has u in its own
forward list walks that list up to u and looks which w are marked. Numbers descend by degree, so
forward lists are short, and the marks, a byte for each number below u, are in the cache where there
is most to do: at hubs. The work is half the sum of squared lengths of forward lists, order
edges^1.5 at most. (The forward algorithm of Schank and Wagner, "Finding, counting and listing all
triangles in large graphs", 2005, with marks instead of merges.)

Across partitions: whoever owns v sends its forward list once to each partition that owns some u in
it, and that partition calls `count_closing`; what it finds for vertices of others travels back.
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
    """How many triangles each vertex is part of; three times the triangles in all.

    Directions, copies of an edge and self-loops do not count. `into is out` says that the graph is
    undirected. Fast only if numbers descend by degree; right in any order.
    """
    lists = forward_neighbours(out, into, num_threads)
    lists.ways.fill(1)
    return _closed(lists, backward_neighbours(out, into, num_threads), num_threads)


def clustering(out: Csr, into: Csr, num_threads: int) -> NDArray[np.float64]:
    """Which share of the edges that could run between the neighbours of a vertex is there.

    LDBC's local clustering coefficient: neighbours are those of either direction, an edge between
    two of them counts once for each direction it has. 0 where there are fewer than two neighbours.
    """
    lists = forward_neighbours(out, into, num_threads)
    backward = backward_neighbours(out, into, num_threads)
    if into is out:
        lists.ways.fill(2)
    found = _closed(lists, backward, num_threads)
    degrees = lists.lengths() + backward.lengths()
    possible = degrees.astype(np.float64) * (degrees - 1)
    return np.divide(found, possible, out=np.zeros(out.num_rows), where=degrees > 1)


def count_closing(
    own: NDArray[np.uint32],
    lists: Neighbours,
    asked_vertices: NDArray[np.uint32],
    asked: Neighbours,
    num_vertices: int,
) -> NDArray[np.int64]:
    """Triangles of the asked forward lists whose middle vertex is among `own`; sums by number.

    `lists` are the forward lists of `own`, `asked` those of `asked_vertices`; all members are
    numbers of the whole graph. With every list asked of every partition, the sums add up to what
    `triangles` gives (ways of 1), or to the edges between neighbours (ways as they are).
    """
    places, is_here = present(own, asked.members)
    rows = np.repeat(np.arange(len(asked_vertices), dtype=np.uint32), asked.lengths())[is_here]
    asker_offsets, order = order_by(places, len(own))
    askers = rows[order]
    sums: NDArray[np.int64] = _close(
        0, len(own), num_vertices, own, *lists, asked_vertices, *asked, asker_offsets, askers
    )
    return sums


def _closed(lists: Neighbours, backward: Neighbours, num_threads: int) -> NDArray[np.int64]:
    every = np.arange(len(lists.offsets) - 1, dtype=np.uint32)
    cuts = balanced_cuts(row_offsets(_work(lists.offsets, lists.members)), num_threads)
    askers = (backward.offsets, backward.members)
    sums = over_ranges(_close, cuts, len(every), every, *lists, every, *lists, *askers)
    total: NDArray[np.int64] = np.sum(sums, axis=0)
    return total


@compiled
def _work(offsets: Any, members: Any) -> Any:
    """How many entries are looked at for each u."""
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
    """For w < u < v, u in own[start:stop]: ways (u, w) for v, (v, w) for u, (v, u) for w.

    `askers` has, for each place in `own`, the rows of asked lists in which that vertex is.
    """
    one = np.uint64(1)
    marks = np.zeros(num_vertices, np.uint8)
    sums = np.zeros(num_vertices, np.int64)
    hits = np.empty(num_vertices, np.uint64)
    for place in range(start, stop):
        u = own[place]
        for other in range(list_offsets[place], list_offsets[place + 1]):
            marks[list_members[other]] = list_ways[other]
        found_u = np.int64(0)
        for asker in range(asker_offsets[place], asker_offsets[place + 1]):
            row = askers[asker]
            entry, num_hits = np.uint64(asked_offsets[row]), np.uint64(0)
            w = asked_members[entry]
            while w < u:  # no branch on marks: it would be missed at every other hit
                hits[num_hits] = entry
                num_hits = np.uint64(num_hits + np.uint64(marks[w] != np.uint8(0)))
                entry = np.uint64(entry + one)
                w = asked_members[entry]
            ways_uv = np.int64(asked_ways[entry])
            found_v = np.int64(0)
            for hit in hits[:num_hits]:
                w = asked_members[hit]
                found_u += np.int64(asked_ways[hit])
                found_v += np.int64(marks[w])
                sums[w] += ways_uv
            sums[asked_vertices[row]] += found_v
        sums[u] += found_u
        for other in range(list_offsets[place], list_offsets[place + 1]):
            marks[list_members[other]] = np.uint8(0)
    return sums
