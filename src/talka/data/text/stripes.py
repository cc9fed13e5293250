"""From rows to blocks: a stripe of blocks at a time, all blocks of a stripe from pieces of its rows.

A piece is a few rows, its entries sorted by column block. When the rows of a stripe are done, the
size of each of its blocks is known; a block is then put together from its part of every piece,
straight in its place in the file, and shuffled there.
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
from talka.data.text.rows import RowSource, Span, cut_rows
from talka.data.text.spool import Spool, Stored
from talka.threads import ThreadPool

# Of the memory budget. Two stripes live at a time: one is made into blocks, one is growing.
_STRIPE_SHARE, _PAIRS_SHARE = 0.2, 0.2
_TASK_PAIRS = 1 << 18  # small blocks are made together: less hand-over between threads
_SHUFFLE_PAIRS = 1 << 24  # at most a second in one call


class BlockPlan(NamedTuple):
    block_edge: int
    seed: int
    one: float
    """The sum that stands for a count of 1."""


class _Piece(NamedTuple):
    span: Span
    records: NDArray[np.uint64]
    ends: NDArray[np.int64]


class _Kept(NamedTuple):
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
    passed: Callable[[Span], None],
) -> PairBlocks:
    """All rows as blocks; `passed` is told each span whose rows are done."""
    num_words, edge = len(source.costs), plan.block_edge
    file = PairFile(resources.work_dir, memory_bytes=int(_PAIRS_SHARE * resources.memory_bytes))
    pieces = pool.map(lambda span: _piece(source, span, plan), cut_rows(source.costs, every=edge))
    blocks: list[_Block] = []
    under_way: list[Future[None]] = []
    for row_block, stripe in groupby(pieces, key=lambda piece: piece.span.first_row // edge):
        spool = Spool(resources.work_dir, memory_bytes=int(_STRIPE_SHARE * resources.memory_bytes))
        kept = []
        for piece in stripe:
            kept.append(_Kept(spool.add(piece.records), np.append(0, piece.ends)))
            passed(piece.span)
        _finish(under_way)
        of_stripe = _layout(row_block, kept, file.num_bytes // PAIR.itemsize)
        file.extend(sum(block.stop - block.start for block in of_stripe) * PAIR.itemsize)
        under_way = [
            pool.submit(_write, file, kept, together, plan.seed) for together in _tasks(of_stripe)
        ]
        blocks += of_stripe
    _finish(under_way)
    index = np.array(blocks, np.int64).reshape(-1, 4)
    pairs = file.mapped(0, file.num_bytes, PAIR)
    return PairBlocks(pairs, index, num_words=num_words, block_edge=edge)


def _piece(source: RowSource, span: Span, plan: BlockPlan) -> _Piece:
    rows = source.rows(span)
    edge = plan.block_edge
    ends = np.zeros(-(-len(source.costs) // edge), np.int64)
    first_row = span.first_row % edge
    records = pack_rows(rows.columns, rows.sums, rows.ends, first_row, plan.one, edge, ends)
    return _Piece(span, records, ends)


def _layout(row_block: int, kept: Sequence[_Kept], start: int) -> list[_Block]:
    lengths = np.sum([np.diff(piece.starts) for piece in kept], axis=0)
    stops = start + np.cumsum(lengths)
    return [
        _Block(row_block, int(col_block), int(stops[col_block] - length), int(stops[col_block]))
        for col_block, length in enumerate(lengths)
        if length
    ]


def _tasks(blocks: Sequence[_Block]) -> Iterator[list[_Block]]:
    together: list[_Block] = []
    for block in blocks:
        together.append(block)
        if block.stop - together[0].start >= _TASK_PAIRS:
            yield together
            together = []
    if together:
        yield together


def _write(file: PairFile, kept: Sequence[_Kept], blocks: Sequence[_Block], seed: int) -> None:
    first, size = blocks[0].start, PAIR.itemsize
    area = file.mapped(first * size, blocks[-1].stop * size, np.dtype(np.uint64))
    for row_block, col_block, start, stop in blocks:
        records = area[start - first : stop - first]
        parts = [piece.records[slice(*piece.starts[col_block : col_block + 2])] for piece in kept]
        np.concatenate(parts, out=records)
        for done in range(0, len(records), _SHUFFLE_PAIRS):
            shuffle_block(records, done, done + _SHUFFLE_PAIRS, seed, row_block, col_block)


def _finish(tasks: Sequence[Future[None]]) -> None:
    for task in tasks:
        task.result()
