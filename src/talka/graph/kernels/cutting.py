"""Distribution of the edges of a graph to partitions, and the layout of each partition.

deal -> per partition: mirrors_of -> slots (by the caller) -> rows_of -> lay_out

Every pass is linear in the edges, and no row is ever sorted: `out` is filled in the order of the
rows of `into`, so its columns ascend, and vice versa.
"""

from typing import Any

import numpy as np

from talka.compiled import compiled


@compiled
def count_dealt(
    offsets: Any, columns: Any, owners: Any, cut_vertices: Any, num_partitions: Any
) -> Any:
    """Return the number of edges of each partition, and of edges between partitions."""
    counts = np.zeros(num_partitions, np.int64)
    num_cut = np.int64(0)
    for source in range(len(offsets) - 1):
        for entry in range(offsets[source], offsets[source + 1]):
            target = columns[entry]
            leader = max(np.uint32(source), target) if cut_vertices else np.uint32(source)
            counts[owners[leader]] += 1
            num_cut += owners[source] != owners[target]
    return counts, num_cut


@compiled
def deal(
    offsets: Any,
    columns: Any,
    weights: Any,
    owners: Any,
    cut_vertices: Any,
    free: Any,
    dealt_sources: Any,
    dealt_targets: Any,
    dealt_weights: Any,
) -> None:
    """Write each edge to the next free place of its partition; the order of rows is kept.

    An edge goes to the owner of its source or, if vertices are cut, of its end of lower degree,
    which has the greater number. `weights` is empty for a graph without weights.
    """
    # All partitions share the dealt arrays: each has a range, and `free` the next place in it. One
    # pass over the edges in memory order writes as many sequential streams as there are partitions.
    one = np.uint64(1)
    for source in range(len(offsets) - 1):
        for entry in range(offsets[source], offsets[source + 1]):
            target = columns[entry]
            leader = max(np.uint32(source), target) if cut_vertices else np.uint32(source)
            owner = owners[leader]
            at = free[owner]
            free[owner] = at + one
            dealt_sources[at] = np.uint32(source)
            dealt_targets[at] = target
            if len(weights):
                dealt_weights[at] = weights[entry]


@compiled
def mirrors_of(ends: Any, owners: Any, index: Any, is_seen: Any) -> Any:
    """Return each vertex among `ends` that another partition owns, once.

    `is_seen` is all 0 before and after.
    """
    num_mirrors = 0
    for vertex in ends:
        if owners[vertex] != index and not is_seen[vertex]:
            is_seen[vertex] = 1
            num_mirrors += 1
    mirrors = np.empty(num_mirrors, np.uint32)
    at = 0
    for vertex in ends:
        if is_seen[vertex]:
            is_seen[vertex] = 0
            mirrors[at] = vertex
            at += 1
    return mirrors


@compiled
def rows_of(
    sources: Any,
    targets: Any,
    source_slots: Any,
    target_slots: Any,
    num_rows: Any,
    num_columns: Any,
) -> Any:
    """Return entries per source slot, the first edge of each, and entries per target slot."""
    row_counts = np.zeros(num_rows, np.uint32)
    row_starts = np.zeros(num_rows, np.uint64)
    column_counts = np.zeros(num_columns, np.uint32)
    one = np.uint32(1)
    for edge in range(len(sources)):
        slot = source_slots[sources[edge]]
        if row_counts[slot] == 0:
            row_starts[slot] = edge
        row_counts[slot] += one
        column_counts[target_slots[targets[edge]]] += one
    return row_counts, row_starts, column_counts


@compiled
def lay_out(
    row_starts: Any,
    targets: Any,
    weights: Any,
    target_slots: Any,
    out_offsets: Any,
    out_columns: Any,
    out_weights: Any,
    into_offsets: Any,
    into_columns: Any,
    into_weights: Any,
) -> None:
    """Fill the rows of both directions. `weights` is empty for a graph without weights."""
    # Edges of a source are contiguous in `targets`, from `row_starts` on. Visit source slots in
    # order and append each to the rows of its targets: the columns of `into` then ascend.
    one = np.uint32(1)
    free = into_offsets[:-1].copy()
    for row in range(len(row_starts)):
        first = row_starts[row]
        for edge in range(first, first + np.uint64(out_offsets[row + 1] - out_offsets[row])):
            slot = target_slots[targets[edge]]
            into_columns[free[slot]] = np.uint32(row)
            if len(weights):
                into_weights[free[slot]] = weights[edge]
            free[slot] += one
    # Then read `into` in order and append each target slot to the rows of its sources, so that the
    # columns of `out` ascend too. Two linear passes replace a sort of every row.
    free = out_offsets[:-1].copy()
    for slot in range(len(into_offsets) - 1):
        for entry in range(into_offsets[slot], into_offsets[slot + 1]):
            row_slot = into_columns[entry]
            out_columns[free[row_slot]] = np.uint32(slot)
            if len(weights):
                out_weights[free[row_slot]] = into_weights[entry]
            free[row_slot] += one
