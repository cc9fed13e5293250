"""Grouping of edges by one of their ends: distribute over buckets, then settle each bucket.

A bucket is a range of rows whose entries together fit into a cache. Edges are first written to the
bucket of their row, as one sequential stream per bucket; then the entries of each bucket are moved
to their rows. Writing to rows directly took two to four times as long, because each entry then
misses the cache. Entries keep their order, so the result is the same for any number of threads.

Vertices are given as slots, `id - base`, in arithmetic that wraps around, which is right for signed
64-bit ids too. Edges are divided into chunks by `cuts`; a kernel works on chunks `first` to `last`,
and each chunk has a row of `counts` and `cursors` with an entry per bucket. Weights may be None;
they are separate arguments, because only then does numba compile a version without them.
"""

from typing import Any

import numpy as np

from talka.compiled import compiled

_HALF = np.uint64(32)


@compiled
def count_slots(ids: Any, base: Any, counts: Any) -> None:
    """Count the occurrences of each slot."""
    for index in range(len(ids)):
        counts[ids[index] - base] += np.uint32(1)


@compiled
def count_loops(sources: Any, targets: Any, base: Any, counts: Any) -> None:
    """Count the loops at each slot."""
    for edge in range(len(sources)):
        if sources[edge] == targets[edge]:
            counts[sources[edge] - base] += np.uint32(1)


@compiled
def count_edges(
    first: Any, last: Any, cuts: Any, ends: Any, rules: Any, slot_buckets: Any, counts: Any
) -> None:
    """Count the entries that `share_edges` will write to each bucket, chunk by chunk."""
    sources, targets = ends
    base, drop_loops = rules
    for chunk in range(first, last):
        count = counts[chunk]
        for edge in range(cuts[chunk], cuts[chunk + 1]):
            if not (drop_loops and sources[edge] == targets[edge]):
                count[slot_buckets[targets[edge] - base]] += 1


@compiled
def share_edges(
    first: Any,
    last: Any,
    cuts: Any,
    ends: Any,
    rules: Any,
    numbers: Any,
    buckets: Any,
    cursors: Any,
    weights: Any,
    shared: Any,
) -> None:
    """Write (target, source) to the bucket of the target.

    A pair is one 64-bit number with the row in the upper half and the column in the lower half.
    """
    # `cursor` has the next free place per bucket for this chunk, so chunks write to disjoint places
    # and threads need no locks. A pair of 64 bits makes each entry one store to one stream.
    sources, targets = ends
    base, drop_loops = rules
    pairs, pair_weights = shared
    for chunk in range(first, last):
        cursor = cursors[chunk]
        for edge in range(cuts[chunk], cuts[chunk + 1]):
            if drop_loops and sources[edge] == targets[edge]:
                continue
            source, target = numbers[sources[edge] - base], numbers[targets[edge] - base]
            at = cursor[buckets[target]]
            cursor[buckets[target]] = at + np.uint64(1)
            pairs[at] = np.uint64(target) << _HALF | np.uint64(source)
            if weights is not None:
                pair_weights[at] = weights[edge]


@compiled
def count_columns(first: Any, last: Any, cuts: Any, csr: Any, buckets: Any, counts: Any) -> None:
    """Count the entries that `share_rows` will write to each bucket, chunk by chunk."""
    offsets, columns, _ = csr
    for chunk in range(first, last):
        count = counts[chunk]
        for entry in range(offsets[cuts[chunk]], offsets[cuts[chunk + 1]]):
            count[buckets[columns[entry]]] += 1


@compiled
def share_rows(
    first: Any,
    last: Any,
    cuts: Any,
    csr: Any,
    weights: Any,
    buckets: Any,
    cursors: Any,
    shared: Any,
) -> None:
    """Write (column, row) of each entry to the bucket of the column.

    Rows are read in ascending order, so columns ascend in each row of the result.
    """
    offsets, columns, _ = csr
    pairs, pair_weights = shared
    for chunk in range(first, last):
        cursor = cursors[chunk]
        for row in range(cuts[chunk], cuts[chunk + 1]):
            for entry in range(offsets[row], offsets[row + 1]):
                column = columns[entry]
                at = cursor[buckets[column]]
                cursor[buckets[column]] = at + np.uint64(1)
                pairs[at] = np.uint64(column) << _HALF | np.uint64(row)
                if weights is not None:
                    pair_weights[at] = weights[entry]


@compiled
def settle(start: Any, stop: Any, shared: Any, cursor: Any, columns: Any, weights: Any) -> None:
    """Move the pairs from `start` to `stop`, which are whole buckets, to their rows."""
    pairs, pair_weights = shared
    for index in range(start, stop):
        row = pairs[index] >> _HALF
        at = cursor[row]
        cursor[row] = at + np.uint32(1)
        columns[at] = np.uint32(pairs[index])
        if weights is not None:
            weights[at] = pair_weights[index]


@compiled
def drop_duplicates(offsets: Any, columns: Any, weights: Any) -> Any:
    """Keep one entry per row and column, in place, and return how many are left.

    The entry that is kept gets the smallest of their weights.
    """
    kept = np.int64(0)
    start = np.int64(offsets[0])
    for row in range(len(offsets) - 1):
        stop = np.int64(offsets[row + 1])
        begin = kept
        for entry in range(start, stop):
            if kept > begin and columns[kept - 1] == columns[entry]:
                if weights is not None:
                    weights[kept - 1] = min(weights[kept - 1], weights[entry])
                continue
            columns[kept] = columns[entry]
            if weights is not None:
                weights[kept] = weights[entry]
            kept += 1
        start = stop
        offsets[row + 1] = kept
    return kept


@compiled
def merge_rows(start: Any, stop: Any, out: Any, other: Any, merged: Any, weights: Any) -> None:
    """Merge each row of `out` and `other` into `merged`, ascending; loops are taken from `out`.

    Among equal columns those of `out` come first in rows below the column and last in rows above,
    so that parallel edges have the same order at both of their ends. `weights` are those of all
    three, or None.
    """
    # Makes a graph undirected: `out` has the targets of a row, `other` its sources. Rows of both
    # ascend, so a merge with a cursor on each side gives an ascending row without a sort. A loop is
    # in both; its entry in `other` is skipped.
    offsets, columns, _ = out
    other_offsets, other_columns, _ = other
    merged_offsets, merged_columns, _ = merged
    for row in range(start, stop):
        at, left, right = merged_offsets[row], offsets[row], other_offsets[row]
        left_end, right_end = offsets[row + 1], other_offsets[row + 1]
        while left < left_end or right < right_end:
            if right < right_end and other_columns[right] == row:
                right += np.uint32(1)
                continue
            takes_left = right >= right_end
            if not takes_left and left < left_end:
                if columns[left] == other_columns[right]:
                    takes_left = row < columns[left]
                else:
                    takes_left = columns[left] < other_columns[right]
            if takes_left:
                merged_columns[at] = columns[left]
                if weights is not None:
                    weights[2][at] = weights[0][left]
                left += np.uint32(1)
            else:
                merged_columns[at] = other_columns[right]
                if weights is not None:
                    weights[2][at] = weights[1][right]
                right += np.uint32(1)
            at += np.uint32(1)


@compiled
def count_row_loops(start: Any, stop: Any, offsets: Any, columns: Any, counts: Any) -> None:
    """Count the entries of each row that are loops."""
    for row in range(start, stop):
        for entry in range(offsets[row], offsets[row + 1]):
            counts[row] += columns[entry] == row
