"""Group edges by one of their ends: share out over buckets, then settle each bucket.

A bucket is a run of rows whose entries lie together in a piece of memory that a cache can hold.
Edges first go to the bucket of their row, in as many streams as there are buckets; then every
bucket is settled on its own. Going to the rows at once took two to four times as long: each entry
then misses the cache. Entries keep the order in which they came, so the result is the same for any
number of threads.

Vertices come as slots: `id - base`, in arithmetic that wraps around, which is right for signed
64-bit ids, too. A kernel works on the parts `first` to `last` of what `cuts` cut. Weights
may be None; they are arguments of their own, because a kernel is only then compiled without them.
"""

from typing import Any

import numpy as np

from talka.compiled import compiled

_HALF = np.uint64(32)


@compiled
def count_slots(ids: Any, base: Any, counts: Any) -> None:
    for index in range(len(ids)):
        counts[ids[index] - base] += np.uint32(1)


@compiled
def count_loops(sources: Any, targets: Any, base: Any, counts: Any) -> None:
    for edge in range(len(sources)):
        if sources[edge] == targets[edge]:
            counts[sources[edge] - base] += np.uint32(1)


@compiled
def count_edges(
    first: Any, last: Any, cuts: Any, ends: Any, rules: Any, slot_buckets: Any, counts: Any
) -> None:
    """How many entries `share_edges` will put into each bucket, part by part."""
    sources, targets = ends
    base, drop_loops = rules
    for part in range(first, last):
        count = counts[part]
        for edge in range(cuts[part], cuts[part + 1]):
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
    """Put (target, source) into the bucket of the target.

    A pair of numbers is one number of 64 bits, the row above, the column below.
    """
    sources, targets = ends
    base, drop_loops = rules
    pairs, pair_weights = shared
    for part in range(first, last):
        cursor = cursors[part]
        for edge in range(cuts[part], cuts[part + 1]):
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
    """How many entries `share_rows` will put into each bucket, part by part."""
    offsets, columns, _ = csr
    for part in range(first, last):
        count = counts[part]
        for entry in range(offsets[cuts[part]], offsets[cuts[part + 1]]):
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
    """Put (column, row) of each entry into the bucket of the column.

    Rows come in ascending order, so they ascend in every row of what becomes of them.
    """
    offsets, columns, _ = csr
    pairs, pair_weights = shared
    for part in range(first, last):
        cursor = cursors[part]
        for row in range(cuts[part], cuts[part + 1]):
            for entry in range(offsets[row], offsets[row + 1]):
                column = columns[entry]
                at = cursor[buckets[column]]
                cursor[buckets[column]] = at + np.uint64(1)
                pairs[at] = np.uint64(column) << _HALF | np.uint64(row)
                if weights is not None:
                    pair_weights[at] = weights[entry]


@compiled
def settle(start: Any, stop: Any, shared: Any, cursor: Any, columns: Any, weights: Any) -> None:
    """Put the pairs from `start` to `stop`, which are whole buckets, into their rows."""
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
    """Keep one entry of those with the same row and column, in place; how many are left.

    The one that is kept has the smallest weight of them.
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
def merge_rows(start: Any, stop: Any, one: Any, other: Any, merged: Any, weights: Any) -> None:
    """Write each row of `one` and `other` into `merged`, ascending; loops are taken from `one`.

    Of equal columns those of `one` come first in rows below the column and last in rows above, so
    that parallel edges lie in the same order at both of their ends. `weights` are those of all
    three, or None.
    """
    offsets, columns, _ = one
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
    """How many entries of each row are in the column of the row itself."""
    for row in range(start, stop):
        for entry in range(offsets[row], offsets[row + 1]):
            counts[row] += columns[entry] == row
