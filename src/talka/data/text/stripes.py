"""Rows to blocks, one stripe of blocks at a time.

A stripe is the row of blocks that share their words. It is built from pieces: a piece is a few rows
whose entries are sorted by column block. When all rows of a stripe are done, the sizes of its
blocks are known; a block is then assembled from its part of every piece, directly at its position
in the file, and shuffled there.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.data.text.pair_blocks import PAIR, PairBlocks
from talka.data.text.pair_file import PairFile
from talka.data.text.pair_kernels import pack_rows, shuffle_block
from talka.data.text.resources import Resources
from talka.data.text.rows import RowSource, RowSpan, cut_rows
from talka.data.text.spool import Spool, Stored
from talka.threads import ThreadPool

# Shares of the memory budget. Two stripes exist at a time: one is written as blocks, one grows.
_STRIPE_SHARE, _PAIRS_SHARE = 0.2, 0.2
_TASK_PAIRS = 1 << 18  # small blocks share a task: less overhead between threads
_SHUFFLE_PAIRS = 1 << 24  # at most a second per call


class BlockPlan(NamedTuple):
    """Parameters of all blocks."""

    block_edge: int
    seed: int
    unit: float
    """The sum that stands for a count of 1."""


class _Piece(NamedTuple):
    span: RowSpan
    records: NDArray[np.uint64]
    ends: NDArray[np.int64]


class _StoredPiece(NamedTuple):
    records: Stored
    starts: NDArray[np.int64]
    """Records of column block c are records[starts[c]:starts[c + 1]]."""


class _Block(NamedTuple):
    row_block: int
    col_block: int
    start: int
    stop: int


def write_blocks(
    source: RowSource,
    plan: BlockPlan,
    resources: Resources,
    pool: ThreadPool,
    report: Callable[[RowSpan], None],
) -> PairBlocks:
    """Write all rows as blocks; `report` is called with each span whose rows are done."""
    num_words, edge = len(source.costs), plan.block_edge
    file = PairFile(resources.work_dir, memory_bytes=int(_PAIRS_SHARE * resources.memory_bytes))
    pieces = pool.map(lambda span: _piece(source, span, plan), cut_rows(source.costs, every=edge))
    blocks: list[_Block] = []
    pending: list[Future[None]] = []
    for row_block, stripe in groupby(pieces, key=lambda piece: piece.span.first_row // edge):
        spool = Spool(resources.work_dir, memory_bytes=int(_STRIPE_SHARE * resources.memory_bytes))
        stored = []
        for piece in stripe:
            stored.append(_StoredPiece(spool.add(piece.records), np.append(0, piece.ends)))
            report(piece.span)
        _wait_for(pending)
        stripe_blocks = _layout(row_block, stored, file.num_bytes // PAIR.itemsize)
        file.extend(sum(block.stop - block.start for block in stripe_blocks) * PAIR.itemsize)
        pending = [
            pool.submit(_write, file, stored, group, plan.seed) for group in _groups(stripe_blocks)
        ]
        blocks += stripe_blocks
    _wait_for(pending)
    index = np.array(blocks, np.int64).reshape(-1, 4)
    pairs = file.mapped(0, file.num_bytes, PAIR)
    return PairBlocks(pairs, index, num_words=num_words, block_edge=edge)


def _piece(source: RowSource, span: RowSpan, plan: BlockPlan) -> _Piece:
    rows = source.rows(span)
    edge = plan.block_edge
    ends = np.zeros(-(-len(source.costs) // edge), np.int64)
    first_row = span.first_row % edge
    records = pack_rows(rows.columns, rows.sums, rows.ends, first_row, plan.unit, edge, ends)
    return _Piece(span, records, ends)


def _layout(row_block: int, stored: Sequence[_StoredPiece], start: int) -> list[_Block]:
    """Return the non-empty blocks of a stripe that begins at pair `start` of the file."""
    lengths = np.sum([np.diff(piece.starts) for piece in stored], axis=0)
    stops = start + np.cumsum(lengths)
    return [
        _Block(row_block, int(col_block), int(stops[col_block] - length), int(stops[col_block]))
        for col_block, length in enumerate(lengths)
        if length
    ]


def _groups(blocks: Sequence[_Block]) -> Iterator[list[_Block]]:
    """Group adjacent blocks so that each group has enough pairs for a task."""
    group: list[_Block] = []
    for block in blocks:
        group.append(block)
        if block.stop - group[0].start >= _TASK_PAIRS:
            yield group
            group = []
    if group:
        yield group


def _write(
    file: PairFile, stored: Sequence[_StoredPiece], blocks: Sequence[_Block], seed: int
) -> None:
    """Assemble adjacent blocks from the pieces of their stripe, and shuffle each."""
    first, size = blocks[0].start, PAIR.itemsize
    area = file.mapped(first * size, blocks[-1].stop * size, np.dtype(np.uint64))
    for row_block, col_block, start, stop in blocks:
        records = area[start - first : stop - first]
        parts = [piece.records[slice(*piece.starts[col_block : col_block + 2])] for piece in stored]
        np.concatenate(parts, out=records)
        for done in range(0, len(records), _SHUFFLE_PAIRS):
            shuffle_block(records, done, done + _SHUFFLE_PAIRS, seed, row_block, col_block)


def _wait_for(tasks: Sequence[Future[None]]) -> None:
    for task in tasks:
        task.result()
