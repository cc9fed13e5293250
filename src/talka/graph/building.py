"""From edges between ids to rows of both directions.

ids -> slots (`renumbering.py`) -> degrees -> numbers -> entries by target -> by source -> by target

Numbers descend by degree: what loops over a graph gathers most is then close together. Entries are
grouped three times because grouping keeps their order: after the first time targets ascend, so
after the second the columns of each row do, and after the third those of the other direction.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.events.stream import Phase
from talka.graph import grouping
from talka.graph.csr import Csr
from talka.graph.grouping import Buckets, Flow
from talka.graph.ids import Ids
from talka.graph.kernels import grouping as kernels
from talka.graph.kernels.offsets import row_offsets
from talka.graph.kernels.threads import balanced_cuts, over_ranges
from talka.graph.renumbering import Slots, check_number_of_vertices

NUM_STEPS = 4
_MOST = np.uint64(2**32 - 1)


class Rules(NamedTuple):
    directed: bool = True
    drop_duplicates: bool = False
    drop_loops: bool = False


class Built(NamedTuple):
    out: Csr
    into: Csr
    """The same object as `out` where edges have no direction."""
    ids: Ids
    num_edges: int
    """An edge without a direction counts once, though it has two entries."""


class Degrees(NamedTuple):
    """By slot."""

    exists: NDArray[np.bool_]
    total: NDArray[Any]
    """Edges that begin or end here: both counts for a loop, one where there is no direction."""
    incoming: NDArray[Any]


def build(
    slots: Slots,
    weights: NDArray[np.float64] | None,
    rules: Rules,
    *,
    num_threads: int,
    phase: Phase,
) -> Built:
    """`phase` advances by one after each of `NUM_STEPS`."""
    degrees = _degrees(slots, rules)
    present = np.flatnonzero(degrees.exists).astype(np.uint32)
    check_number_of_vertices(len(present))
    ranks = _by_degree(degrees.total[present])
    ids = Ids.ranked(slots.ids_at(present), ranks)
    rows = present[ranks]
    incoming = outgoing = Buckets.over(row_offsets(degrees.incoming[rows]))
    if rules.directed:
        outgoing = Buckets.over(row_offsets(degrees.total[rows] - degrees.incoming[rows]))
    del degrees, present
    phase.advance()
    is_weighted = weights is not None
    num_entries = int(incoming.offsets[-1])
    room = grouping.make_room(num_entries, is_weighted=is_weighted)
    flow = Flow(both_ways=not rules.directed, drop_loops=rules.drop_loops)
    grouping.share_edges(slots, weights, flow, rows, incoming, room, num_threads)
    columns = grouping.make_columns(num_entries, is_weighted=is_weighted)
    by_target = grouping.settled(incoming, room, columns, num_threads)
    phase.advance()
    grouping.share_rows(by_target, outgoing, room, num_threads)
    # The columns may be written over: all entries lie in `room` now.
    out = grouping.settled(outgoing, room, columns, num_threads)
    phase.advance()
    if rules.drop_duplicates:
        out = grouping.without_duplicates(out)
        incoming = Buckets.over(grouping.column_offsets(out))
    del by_target, columns
    into = out
    if rules.directed:
        grouping.share_rows(out, incoming, room, num_threads)
        columns = grouping.make_columns(out.num_entries, is_weighted=is_weighted)
        into = grouping.settled(incoming, room, columns, num_threads)
    phase.advance()
    for csr in (out, into):
        freeze(csr)
    num_loops = 0 if rules.directed else int(loops_by_row(out, num_threads).sum())
    num_edges = out.num_entries if rules.directed else (out.num_entries + num_loops) // 2
    return Built(out, into, ids, num_edges)


def union(out: Csr, into: Csr, num_threads: int) -> Csr:
    """Rows of an undirected graph that has every edge of a directed one; a loop is one entry."""
    loops = loops_by_row(into, num_threads)
    offsets = row_offsets(out.degrees() + into.degrees() - loops)
    merged = grouping.make_columns(int(offsets[-1]), is_weighted=out.weights is not None)
    both = Csr(offsets, *merged)
    weights = None if out.weights is None else (out.weights, into.weights, both.weights)
    cuts = balanced_cuts(offsets, num_threads)
    over_ranges(kernels.merge_rows, cuts, out, into, both, weights)
    freeze(both)
    return both


def loops_by_row(csr: Csr, num_threads: int) -> NDArray[np.int64]:
    loops = np.zeros(csr.num_rows, np.int64)
    cuts = balanced_cuts(csr.offsets, num_threads)
    over_ranges(kernels.count_row_loops, cuts, csr.offsets, csr.columns, loops)
    return loops


def freeze(csr: Csr) -> None:
    for array in csr:
        if array is not None:
            array.flags.writeable = False


def _degrees(slots: Slots, rules: Rules) -> Degrees:
    """One thread for the sources, one for the targets: so there is one count for each slot."""
    fits = 2 * len(slots.ends[0]) < 2**32
    counts = np.zeros((2, slots.num_slots), np.uint32 if fits else np.uint64)

    def count(end: int, _: int) -> None:
        kernels.count_slots(slots.ends[end], slots.base, counts[end])

    over_ranges(count, np.arange(3))
    outgoing, incoming = counts
    exists = np.ones(slots.num_slots, np.bool_) if slots.known is None else slots.known
    exists |= outgoing > 0
    exists |= incoming > 0
    if rules.drop_loops or not rules.directed:
        loops = np.zeros_like(outgoing)
        kernels.count_loops(*slots.ends, slots.base, loops)
        if rules.drop_loops:
            outgoing -= loops
        incoming -= loops  # where there is no direction, a loop has one entry
    outgoing += incoming
    return Degrees(exists, outgoing, incoming if rules.directed else outgoing)


def _by_degree(degrees: NDArray[Any]) -> NDArray[np.uint32]:
    """Places in descending order of degree, of equal ones in ascending order.

    Degree above, place below, and one sort of plain numbers: a stable sort of places is slower.

    >>> _by_degree(np.array([1, 5, 1, 7], np.uint32))
    array([3, 1, 0, 2], dtype=uint32)
    """
    keys = np.arange(len(degrees), dtype=np.uint64)
    keys |= (_MOST - np.minimum(degrees, _MOST)) << np.uint64(32)
    keys.sort()
    return keys.astype(np.uint32)
