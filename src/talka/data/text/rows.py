"""Rows of the co-occurrence matrix, a few at a time: from windows in memory or from runs on disk.

A text that fits into memory is one segment, whose rows are final. Otherwise each segment gives a
run of partial rows, and the runs are summed. Sums are integers and columns are in the order of
their first occurrence in the text, so both ways give bit-identical rows.
"""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from talka.data.text.pair_kernels import sum_runs, sum_windows
from talka.data.text.segments import InvertedText
from talka.data.text.spool import OnDisk, SpoolFile
from talka.data.text.weights import Weights
from talka.threads import ThreadPool

_PIECE_ENTRIES = 1 << 20  # 12 MB of sums for each thread; tens of milliseconds of work


class RowSpan(NamedTuple):
    """A range of consecutive rows."""

    first_row: int
    stop_row: int


class PairRows(NamedTuple):
    """Entries of a span of rows: row r ends at ends[r]. The arrays are scratch of the thread."""

    columns: NDArray[np.uint32]
    sums: NDArray[np.uint64]
    ends: NDArray[np.int64]


class RowSource(Protocol):
    """Rows of the co-occurrence matrix."""

    costs: NDArray[np.int64]
    """Upper bound of the entries of each row, or of the work it takes if that is more."""

    def rows(self, span: RowSpan) -> PairRows:
        """Compute rows, in any thread; they are valid until the next call in the same thread."""
        ...


def cut_rows(costs: NDArray[np.int64], *, every: int) -> Iterator[RowSpan]:
    """Yield spans of rows that fit into a thread's scratch and cross no multiple of `every`."""
    before = np.concatenate([[0], np.cumsum(costs)])
    row = 0
    while row < len(costs):
        fitting = int(np.searchsorted(before, before[row] + _PIECE_ENTRIES, side="right")) - 1
        stop = min(max(fitting, row + 1), row - row % every + every, len(costs))
        yield RowSpan(row, stop)
        row = stop


class _Scratch(threading.local):
    """Arrays of one thread: an accumulator of vocabulary size, and buffers for a span of rows."""

    def __init__(self, num_words: int) -> None:
        size = max(_PIECE_ENTRIES, num_words) + 1  # kernels write one entry ahead
        self.totals = np.zeros(num_words, np.uint64)
        self.columns = np.empty(size, np.uint32)
        self.sums = np.empty(size, np.uint64)


class WindowRows:
    """Rows computed from the windows of a segment in memory."""

    def __init__(self, inverted: InvertedText, weights: Weights) -> None:
        self._inverted, self._weights = inverted, weights
        num_words = len(inverted.starts) - 1
        self.counts = np.diff(inverted.starts)
        bounds = np.minimum(num_words, 2 * (len(weights.by_distance) - 1) * self.counts)
        self.costs = np.maximum(bounds, self.counts)
        self._scratch = _Scratch(num_words)

    def rows(self, span: RowSpan) -> PairRows:
        ids, positions, starts = self._inverted
        scratch = self._scratch
        ends = sum_windows(
            ids,
            positions,
            starts[span.first_row : span.stop_row + 1],
            self._weights.by_distance,
            scratch.totals,
            scratch.columns,
            scratch.sums,
        )
        return PairRows(scratch.columns, scratch.sums, ends)


class _Run(NamedTuple):
    columns: OnDisk
    sums: OnDisk
    starts: OnDisk


class RunRows:
    """Rows summed over runs, which are stored on disk."""

    def __init__(self, num_words: int, folder: Path, *, memory_bytes: int) -> None:
        self.costs = np.zeros(num_words, np.int64)
        self._runs: list[_Run] = []
        self._columns, self._sums, self._starts = (
            SpoolFile(folder, memory_bytes) for _ in range(3)
        )
        self._scratch = _Scratch(num_words)

    def add_run(self, source: RowSource, pool: ThreadPool) -> Iterator[RowSpan]:
        """Write the rows of a segment, and yield each span when it is done."""
        num_words = len(self.costs)
        spans = list(cut_rows(source.costs, every=num_words))
        lengths = np.zeros(num_words + 1, np.int64)
        columns_start, sums_start = self._columns.num_bytes, self._sums.num_bytes
        pieces = pool.map(lambda span: _copied(source.rows(span)), spans)
        for span, rows in zip(spans, pieces, strict=True):
            self._columns.append(rows.columns)
            self._sums.append(rows.sums)
            lengths[span.first_row + 1 : span.stop_row + 1] = np.diff(rows.ends, prepend=0)
            yield span
        starts = np.cumsum(lengths)
        self.costs += lengths[1:]
        self._runs.append(
            _Run(
                OnDisk(self._columns, columns_start, np.dtype(np.uint32), int(starts[-1])),
                OnDisk(self._sums, sums_start, np.dtype(np.uint64), int(starts[-1])),
                OnDisk(self._starts, self._starts.append(starts), starts.dtype, len(starts)),
            )
        )

    def rows(self, span: RowSpan) -> PairRows:
        starts = [run.starts[span.first_row : span.stop_row + 1] for run in self._runs]
        ranges = [slice(int(part[0]), int(part[-1])) for part in starts]
        columns = [run.columns[part] for run, part in zip(self._runs, ranges, strict=True)]
        sums = [run.sums[part] for run, part in zip(self._runs, ranges, strict=True)]
        offsets = np.cumsum([0] + [len(part) for part in columns[:-1]])
        inner = np.stack([part - part[0] for part in starts]) + offsets[:, None]
        scratch = self._scratch
        ends = sum_runs(
            np.concatenate(columns),
            np.concatenate(sums),
            inner,
            scratch.totals,
            scratch.columns,
            scratch.sums,
        )
        return PairRows(scratch.columns, scratch.sums, ends)


def _copied(rows: PairRows) -> PairRows:
    end = rows.ends[-1]
    return PairRows(rows.columns[:end].copy(), rows.sums[:end].copy(), rows.ends)
