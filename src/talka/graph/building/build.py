"""Build the rows of both directions from edges between ids.

ids -> slots (`renumbering.py`) -> degrees -> numbers -> entries by target -> by source -> by target

Vertex numbers descend by degree, so that the values that loops over a graph read most are close
together in memory. Entries are grouped three times because grouping keeps their order: after the
first time targets ascend, so after the second the columns of each row do, and after the third those
of the other direction. For an undirected graph the rows of both directions are merged.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.events.stream import Stream
from talka.graph.building import grouping
from talka.graph.building.grouping import Buckets
from talka.graph.building.renumbering import Slots, check_number_of_vertices, renumber
from talka.graph.csr import Csr
from talka.graph.ids import Ids
from talka.graph.kernels import grouping as kernels
from talka.graph.kernels.offsets import row_offsets
from talka.graph.kernels.threads import balanced_cuts, over_ranges
from talka.graph.reading.base import Edges

_NUM_STEPS = 4
_MOST = np.uint64(2**32 - 1)


class BuildRules(NamedTuple):
    """Options for building a graph; see `Graph.from_edges`."""

    directed: bool = True
    drop_duplicates: bool = False
    drop_loops: bool = False


class Built(NamedTuple):
    """The arrays of a graph."""

    out: Csr
    into: Csr
    """Edges by target; the same object as `out` in an undirected graph."""
    ids: Ids
    num_edges: int
    """Number of edges; an undirected edge counts once, although it has two entries."""


def build(edges: Edges, rules: BuildRules, *, num_threads: int, events: Stream) -> Built:
    """Build the rows of both directions; progress is reported as `graph/build`.

    Arrays are freed as early as possible: unless the caller keeps a reference, the edges are freed
    before the rows are complete.
    """
    if edges.twice and not rules.directed:
        rules = rules._replace(drop_duplicates=True)
    with events.phase("graph/build", total=_NUM_STEPS, unit="steps") as phase:
        weights = edges.weights
        slots = renumber(edges, num_threads)
        del edges
        numbered = _numbered(slots, rules)
        phase.advance()
        num_entries, is_weighted = int(numbered.incoming.offsets[-1]), weights is not None
        buffer = grouping.make_buffer(num_entries, is_weighted=is_weighted)
        grouping.share_edges(
            slots,
            weights,
            numbered.rows,
            numbered.incoming,
            buffer,
            drop_loops=rules.drop_loops,
            num_threads=num_threads,
        )
        del slots, weights
        columns = grouping.make_columns(num_entries, is_weighted=is_weighted)
        by_target = grouping.sort_into_rows(numbered.incoming, buffer, columns, num_threads)
        phase.advance()
        grouping.share_rows(by_target, numbered.outgoing, buffer, num_threads)
        # The columns may be overwritten: all entries are in `buffer` now.
        out = grouping.sort_into_rows(numbered.outgoing, buffer, columns, num_threads)
        del by_target, columns
        phase.advance()
        incoming = numbered.incoming
        if rules.drop_duplicates:
            out = grouping.without_duplicates(out)
            incoming = Buckets.over(grouping.column_offsets(out))
        grouping.share_rows(out, incoming, buffer, num_threads)
        columns = grouping.make_columns(out.num_entries, is_weighted=is_weighted)
        into = grouping.sort_into_rows(incoming, buffer, columns, num_threads)
        del buffer
        freeze(out)
        freeze(into)
        built = Built(out, into, numbered.ids, out.num_entries)
        if not rules.directed:
            built = _without_directions(built, rules, num_threads)
        phase.advance()
    return built


def _without_directions(built: Built, rules: BuildRules, num_threads: int) -> Built:
    both, num_edges = union(built.out, built.into, num_threads), built.num_edges
    if rules.drop_duplicates:  # edges in both directions are duplicates, too
        both = grouping.without_duplicates(both)
        num_edges = (both.num_entries + int(_loops_by_row(both, num_threads).sum())) // 2
    freeze(both)
    return Built(both, both, built.ids, num_edges)


def union(out: Csr, into: Csr, num_threads: int) -> Csr:
    """Return the rows of a directed graph without its directions; a loop is one entry.

    Merging two sorted rows costs less time and memory than grouping each edge twice.
    """
    loops = _loops_by_row(into, num_threads)
    offsets = row_offsets(out.degrees() + into.degrees() - loops)
    merged = grouping.make_columns(int(offsets[-1]), is_weighted=out.weights is not None)
    both = Csr(offsets, *merged)
    weights = None if out.weights is None else (out.weights, into.weights, both.weights)
    cuts = balanced_cuts(offsets, num_threads)
    over_ranges(kernels.merge_rows, cuts, out, into, both, weights)
    return both


def _loops_by_row(csr: Csr, num_threads: int) -> NDArray[np.int64]:
    loops = np.zeros(csr.num_rows, np.int64)
    cuts = balanced_cuts(csr.offsets, num_threads)
    over_ranges(kernels.count_row_loops, cuts, csr.offsets, csr.columns, loops)
    return loops


def freeze(csr: Csr) -> None:
    """Make the arrays read-only."""
    for array in csr:
        if array is not None:
            array.flags.writeable = False


class Numbered(NamedTuple):
    """Vertices with their numbers, and the sizes of their rows."""

    ids: Ids
    rows: NDArray[np.uint32]
    """Slot of each vertex number."""
    outgoing: Buckets
    incoming: Buckets


def _numbered(slots: Slots, rules: BuildRules) -> Numbered:
    """Count edges by slot, and number the slots that exist by descending degree.

    One thread counts sources, one targets, so no count is shared. Duplicates count, too, even if
    they are dropped later.
    """
    fits = 2 * len(slots.ends[0]) < 2**32
    counts = np.zeros((2, slots.num_slots), np.uint32 if fits else np.uint64)

    def count(end: int, _: int) -> None:
        kernels.count_slots(slots.ends[end], slots.base, counts[end])

    over_ranges(count, np.arange(3))
    outgoing, incoming = counts
    exists = np.ones(slots.num_slots, np.bool_) if slots.known is None else slots.known
    exists |= outgoing > 0
    exists |= incoming > 0
    loops = np.zeros_like(outgoing)
    if rules.drop_loops or not rules.directed:
        kernels.count_loops(*slots.ends, slots.base, loops)
    if rules.drop_loops:
        counts -= loops
        loops[:] = 0
    present = np.flatnonzero(exists).astype(np.uint32)
    check_number_of_vertices(len(present))
    # In an undirected graph a loop is one entry; `loops` then are the ends counted twice.
    ranks = _by_degree((outgoing + incoming - loops)[present])
    rows = present[ranks]
    return Numbered(
        Ids.ranked(slots.ids_at(present), ranks),
        rows,
        Buckets.over(row_offsets(outgoing[rows])),
        Buckets.over(row_offsets(incoming[rows])),
    )


def _by_degree(degrees: NDArray[Any]) -> NDArray[np.uint32]:
    """Return places in descending order of degree, and in ascending order for equal degrees.

    Sorts integers with the degree in the upper half and the place in the lower half, which is
    faster than a stable sort of places.

    >>> _by_degree(np.array([1, 5, 1, 7], np.uint32))
    array([3, 1, 0, 2], dtype=uint32)
    """
    keys = np.arange(len(degrees), dtype=np.uint64)
    keys |= (_MOST - np.minimum(degrees, _MOST)) << np.uint64(32)
    keys.sort()
    return keys.astype(np.uint32)
