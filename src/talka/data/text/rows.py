"""Rows of the co-occurrence matrix, a few at a time: from windows in memory or from runs on disk.

A text that fits into memory is one segment, and its rows are final. Else each segment gives a run
of partial rows, and the runs are added up. Sums are whole numbers and columns keep the order in
which the text meets them, so both ways give the same rows to the last bit.
"""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from talka.data.text.pair_kernels import sum_runs, sum_windows
from talka.data.text.segments import Inverted
from talka.data.text.spool import OnDisk, SpoolFile
from talka.data.text.weights import Weights
from talka.threads import ThreadPool

_PIECE_ENTRIES = 1 << 20  # 12 MB of sums for each thread; tens of milliseconds of work


class Span(NamedTuple):
    first_row: int
    stop_row: int


class Rows(NamedTuple):
    """Entries of row r of a span end at ends[r]; the arrays belong to the thread's scratch."""

    columns: NDArray[np.uint32]
    sums: NDArray[np.uint64]
    ends: NDArray[np.int64]


class RowSource(Protocol):
    costs: NDArray[np.int64]
    """By row: an upper bound of its entries, or of the work it takes, whichever is more."""

    def rows(self, span: Span) -> Rows:
        """Called by any thread; valid until the same thread asks for the next ones."""
        ...


def cut_rows(costs: NDArray[np.int64], *, every: int) -> Iterator[Span]:
    """Spans of rows that fit a thread's scratch, none across a multiple of `every`."""
    before = np.concatenate([[0], np.cumsum(costs)])
    row = 0
    while row < len(costs):
        fitting = int(np.searchsorted(before, before[row] + _PIECE_ENTRIES, side="right")) - 1
        stop = min(max(fitting, row + 1), row - row % every + every, len(costs))
        yield Span(row, stop)
        row = stop


class _Scratch(threading.local):
    """Arrays of one thread: an accumulator of vocabulary size, and room for the rows of a span."""

    def __init__(self, num_words: int) -> None:
        room = max(_PIECE_ENTRIES, num_words) + 1  # kernels write one ahead
        self.totals = np.zeros(num_words, np.uint64)
        self.columns = np.empty(room, np.uint32)
        self.sums = np.empty(room, np.uint64)


class WindowRows:
    """Rows from the windows of a segment in memory."""

    def __init__(self, inverted: Inverted, weights: Weights) -> None:
        self._inverted, self._weights = inverted, weights
        num_words = len(inverted.starts) - 1
        self.counts = np.diff(inverted.starts)
        bounds = np.minimum(num_words, 2 * (len(weights.by_distance) - 1) * self.counts)
        self.costs = np.maximum(bounds, self.counts)
        self._scratch = _Scratch(num_words)

    def rows(self, span: Span) -> Rows:
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
        return Rows(scratch.columns, scratch.sums, ends)


class _Run(NamedTuple):
    columns: OnDisk
    sums: OnDisk
    starts: OnDisk


class RunRows:
    """Rows added up from runs, which lie on disk."""

    def __init__(self, num_words: int, folder: Path, *, memory_bytes: int) -> None:
        self.costs = np.zeros(num_words, np.int64)
        self._runs: list[_Run] = []
        self._columns, self._sums, self._starts = (
            SpoolFile(folder, memory_bytes) for _ in range(3)
        )
        self._scratch = _Scratch(num_words)

    def add_run(self, source: RowSource, pool: ThreadPool) -> Iterator[Span]:
        """Write the rows of a segment, naming each span that is done."""
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

    def rows(self, span: Span) -> Rows:
        starts = [run.starts[span.first_row : span.stop_row + 1] for run in self._runs]
        spread = [(int(part[0]), int(part[-1])) for part in starts]
        columns = [run.columns[a:b] for run, (a, b) in zip(self._runs, spread, strict=True)]
        sums = [run.sums[a:b] for run, (a, b) in zip(self._runs, spread, strict=True)]
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
        return Rows(scratch.columns, scratch.sums, ends)


def _copied(rows: Rows) -> Rows:
    end = rows.ends[-1]
    return Rows(rows.columns[:end].copy(), rows.sums[:end].copy(), rows.ends)
