"""Group entries into rows through buckets, with the kernels of `kernels/grouping.py`.

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

_MAX_BUCKET_BITS, _MIN_ENTRY_BITS = 9, 12  # at most 512 streams; at least 4,096 entries per bucket


class Buckets(NamedTuple):
    """Buckets of rows: contiguous ranges of rows whose entries are written together."""

    offsets: NDArray[Any]
    """Start of each row, and the end of the last."""
    of_row: NDArray[np.uint16]
    """Bucket of each row, ascending."""

    @classmethod
    def over(cls, offsets: NDArray[Any]) -> "Buckets":
        """Assign each row to the bucket of the piece of memory in which it begins."""
        bits = int(offsets[-1]).bit_length()
        shift = max(_MIN_ENTRY_BITS, bits - _MAX_BUCKET_BITS)
        return cls(offsets, (offsets[:-1] >> offsets.dtype.type(shift)).astype(np.uint16))

    @property
    def num_buckets(self) -> int:
        return int(self.of_row[-1]) + 1 if len(self.of_row) else 1


class EntryBuffer(NamedTuple):
    """Memory for entries while they are grouped by bucket."""

    pairs: NDArray[np.uint64]
    """Row in the upper 32 bits, column in the lower."""
    weights: NDArray[np.float64] | None


class EntryColumns(NamedTuple):
    """Memory for entries that are grouped by row."""

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
    """Put edges into the buckets of their targets; `rows` has the slot of each vertex number."""
    numbers = np.zeros(slots.num_slots, np.uint32)
    numbers[rows] = np.arange(len(rows), dtype=np.uint32)
    slot_buckets = np.zeros(slots.num_slots, np.uint16)
    slot_buckets[rows] = buckets.of_row
    cuts = np.linspace(0, len(slots.ends[0]), num_threads + 1).astype(np.int64)
    threads = np.arange(num_threads + 1)
    rules = (slots.base, drop_loops)
    counts = np.zeros((num_threads, buckets.num_buckets), np.uint64)
    over_ranges(kernels.count_edges, threads, cuts, slots.ends, rules, slot_buckets, counts)
    edges = (cuts, slots.ends, rules, numbers, buckets.of_row, _starts(counts), weights)
    over_ranges(kernels.share_edges, threads, *edges, buffer)


def share_rows(csr: Csr, buckets: Buckets, buffer: EntryBuffer, num_threads: int) -> None:
    """Put entries into the buckets of their columns."""
    cuts, threads = balanced_cuts(csr.offsets, num_threads), np.arange(num_threads + 1)
    counts = np.zeros((num_threads, buckets.num_buckets), np.uint64)
    over_ranges(kernels.count_columns, threads, cuts, csr, buckets.of_row, counts)
    rows = (cuts, csr, csr.weights, buckets.of_row, _starts(counts))
    over_ranges(kernels.share_rows, threads, *rows, buffer)


def sort_into_rows(
    buckets: Buckets, buffer: EntryBuffer, columns: EntryColumns, num_threads: int
) -> Csr:
    """Sort the entries of all buckets into rows, which are written to `columns`."""
    offsets, of_row = buckets
    first_rows = [
        np.searchsorted(of_row, of_row[row]) if row < len(of_row) else row
        for row in balanced_cuts(offsets, num_threads)
    ]
    starts = offsets[np.array(first_rows)].astype(
        np.int64
    )  # of whole buckets, which threads do not share
    over_ranges(kernels.settle, starts, buffer, offsets[:-1].copy(), *columns)
    return Csr(offsets, *columns)


def without_duplicates(csr: Csr) -> Csr:
    """Keep one of several entries with the same row and column, with the smallest weight."""
    offsets, columns, weights = csr
    kept = kernels.drop_duplicates(offsets, columns, weights)
    return Csr(offsets, columns[:kept].copy(), None if weights is None else weights[:kept].copy())


def column_offsets(csr: Csr) -> NDArray[Any]:
    """Return the row offsets of the transpose of `csr`."""
    counts = np.zeros(csr.num_rows, np.uint64)
    kernels.count_slots(csr.columns, np.uint64(0), counts)
    return row_offsets(counts)


def _starts(counts: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the write position of each (thread, bucket): bucket-major, then by thread."""
    in_order = counts.T.ravel()
    starts = np.cumsum(in_order, dtype=np.uint64) - in_order
    return np.ascontiguousarray(starts.reshape(counts.T.shape).T)
