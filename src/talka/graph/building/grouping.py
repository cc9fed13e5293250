"""Entries to rows through buckets: the steps around the kernels of `kernels/grouping.py`.

share (`share_edges` from edges, `share_rows` from rows of the other direction) -> `sort_into_rows`
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.graph.building.renumbering import Slots
from talka.graph.csr import Csr
from talka.graph.kernels import grouping as kernels
from talka.graph.kernels.offsets import row_offsets
from talka.graph.kernels.threads import balanced_cuts, over_ranges

_MAX_BUCKET_BITS, _MIN_ENTRY_BITS = 9, 12  # at most 512 streams; at least 4,096 entries a bucket


class Buckets(NamedTuple):
    """Where rows begin, and the bucket of each row; buckets ascend as rows do."""

    offsets: NDArray[Any]
    of_row: NDArray[np.uint16]

    @classmethod
    def over(cls, offsets: NDArray[Any]) -> "Buckets":
        """A row belongs to the bucket in whose piece of memory it begins."""
        bits = int(offsets[-1]).bit_length()
        shift = max(_MIN_ENTRY_BITS, bits - _MAX_BUCKET_BITS)
        return cls(offsets, (offsets[:-1] >> offsets.dtype.type(shift)).astype(np.uint16))

    @property
    def num_buckets(self) -> int:
        return int(self.of_row[-1]) + 1 if len(self.of_row) else 1


class EntryBuffer(NamedTuple):
    """Memory for entries in buckets, on their way."""

    pairs: NDArray[np.uint64]
    """Row above, column below."""
    weights: NDArray[np.float64] | None


class EntryColumns(NamedTuple):
    """Memory for entries in rows."""

    columns: NDArray[np.uint32]
    weights: NDArray[np.float64] | None


def make_buffer(num_entries: int, *, is_weighted: bool) -> EntryBuffer:
    weights = np.empty(num_entries, np.float64) if is_weighted else None
    return EntryBuffer(np.empty(num_entries, np.uint64), weights)


def make_columns(num_entries: int, *, is_weighted: bool) -> EntryColumns:
    weights = np.empty(num_entries, np.float64) if is_weighted else None
    return EntryColumns(np.empty(num_entries, np.uint32), weights)


def share_edges(
    slots: Slots,
    weights: NDArray[np.float64] | None,
    rows: NDArray[np.uint32],
    buckets: Buckets,
    buffer: EntryBuffer,
    *,
    drop_loops: bool,
    num_threads: int,
) -> None:
    """Put edges into the buckets of their targets; `rows` has the slot of each number."""
    numbers = np.zeros(slots.num_slots, np.uint32)
    numbers[rows] = np.arange(len(rows), dtype=np.uint32)
    slot_buckets = np.zeros(slots.num_slots, np.uint16)
    slot_buckets[rows] = buckets.of_row
    cuts = np.linspace(0, len(slots.ends[0]), num_threads + 1).astype(np.int64)
    parts = np.arange(num_threads + 1)
    rules = (slots.base, drop_loops)
    counts = np.zeros((num_threads, buckets.num_buckets), np.uint64)
    over_ranges(kernels.count_edges, parts, cuts, slots.ends, rules, slot_buckets, counts)
    edges = (cuts, slots.ends, rules, numbers, buckets.of_row, _starts(counts), weights)
    over_ranges(kernels.share_edges, parts, *edges, buffer)


def share_rows(csr: Csr, buckets: Buckets, buffer: EntryBuffer, num_threads: int) -> None:
    """Put entries into the buckets of their columns."""
    cuts, parts = balanced_cuts(csr.offsets, num_threads), np.arange(num_threads + 1)
    counts = np.zeros((num_threads, buckets.num_buckets), np.uint64)
    over_ranges(kernels.count_columns, parts, cuts, csr, buckets.of_row, counts)
    rows = (cuts, csr, csr.weights, buckets.of_row, _starts(counts))
    over_ranges(kernels.share_rows, parts, *rows, buffer)


def sort_into_rows(
    buckets: Buckets, buffer: EntryBuffer, columns: EntryColumns, num_threads: int
) -> Csr:
    """Rows of what lies in the buckets, written into `columns`."""
    offsets, of_row = buckets
    first_rows = [
        np.searchsorted(of_row, of_row[row]) if row < len(of_row) else row
        for row in balanced_cuts(offsets, num_threads)
    ]
    starts = offsets[np.array(first_rows)].astype(np.int64)  # of whole buckets
    over_ranges(kernels.settle, starts, buffer, offsets[:-1].copy(), *columns)
    return Csr(offsets, *columns)


def without_duplicates(csr: Csr) -> Csr:
    """One entry of those with the same row and column, with the smallest of their weights."""
    offsets, columns, weights = csr
    kept = kernels.drop_duplicates(offsets, columns, weights)
    return Csr(offsets, columns[:kept].copy(), None if weights is None else weights[:kept].copy())


def column_offsets(csr: Csr) -> NDArray[Any]:
    """Where the rows begin of what `csr` is when it is turned around."""
    counts = np.zeros(csr.num_rows, np.uint64)
    kernels.count_slots(csr.columns, np.uint64(0), counts)
    return row_offsets(counts)


def _starts(counts: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """By part and bucket: where it goes on; buckets follow one another, in each the parts do."""
    in_order = counts.T.ravel()
    starts = np.cumsum(in_order, dtype=np.uint64) - in_order
    return np.ascontiguousarray(starts.reshape(counts.T.shape).T)
