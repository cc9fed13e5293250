"""Deal the edges of a graph to partitions, and lay out what each of them gets.

deal -> per partition: mirrors_of -> slots (by the caller) -> rows_of -> lay_out

Every pass is linear in edges, and no row is ever sorted: edges leave `into` in the order of its
rows, so the columns of `out` ascend, and the other way round.
"""

from typing import Any

import numpy as np

from talka.compiled import compiled


@compiled
def count_dealt(
    offsets: Any, columns: Any, owners: Any, cut_vertices: Any, num_partitions: Any
) -> Any:
    """Edges that each partition gets, and how many edges have ends that live apart."""
    counts = np.zeros(num_partitions, np.int64)
    num_apart = np.int64(0)
    for source in range(len(offsets) - 1):
        for entry in range(offsets[source], offsets[source + 1]):
            target = columns[entry]
            leader = max(np.uint32(source), target) if cut_vertices else np.uint32(source)
            counts[owners[leader]] += 1
            num_apart += owners[source] != owners[target]
    return counts, num_apart


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
    """Put each edge where its partition has its next free place; the order of rows stays.

    An edge goes to the owner of its source or, if vertices are cut, of its end of lower degree,
    which has the greater number. `weights` may be empty: then there are none.
    """
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
    """The vertices among `ends` that live elsewhere, once. `is_seen` is all 0 before and after."""
    num_found = 0
    for vertex in ends:
        if owners[vertex] != index and not is_seen[vertex]:
            is_seen[vertex] = 1
            num_found += 1
    found = np.empty(num_found, np.uint32)
    at = 0
    for vertex in ends:
        if is_seen[vertex]:
            is_seen[vertex] = 0
            found[at] = vertex
            at += 1
    return found


@compiled
def rows_of(
    sources: Any,
    targets: Any,
    source_slots: Any,
    target_slots: Any,
    num_rows: Any,
    num_columns: Any,
) -> Any:
    """Entries of each source slot, where its edges begin, and entries of each target slot."""
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
    """Fill the rows of both directions. `weights` may be empty: then there are none."""
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
    free = out_offsets[:-1].copy()
    for slot in range(len(into_offsets) - 1):
        for entry in range(into_offsets[slot], into_offsets[slot + 1]):
            row_slot = into_columns[entry]
            out_columns[free[row_slot]] = np.uint32(slot)
            if len(weights):
                out_weights[free[row_slot]] = into_weights[entry]
            free[row_slot] += one
