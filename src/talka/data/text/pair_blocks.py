"""Pairs of words with their counts, in blocks of words x words.

The vectors of both sides of a block stay in the cache while its pairs are trained on. Pairs within
a block are shuffled, because training on them in row order gives worse results.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

PAIR: Final = np.dtype([("row", "<u2"), ("col", "<u2"), ("count", "<f4")])
"""A pair: row and column relative to the first word of the block, and the sum of 1/distance."""

MAX_BLOCK_EDGE: Final = 1 << 16


class PairBlocks:
    """All pairs as one array, in memory or mapped from a file, with the position of each block.

    Block b holds pairs[start[b]:stop[b]]; its first word is row_block[b] * block_edge, its first
    context word col_block[b] * block_edge. Empty blocks are not listed.
    """

    def __init__(
        self, pairs: NDArray[Any], index: NDArray[np.int64], *, num_words: int, block_edge: int
    ) -> None:
        self.pairs, self.index = pairs, index
        self.row_block, self.col_block, self.start, self.stop = index.T
        self.num_words, self.block_edge = num_words, block_edge

    @property
    def num_pairs(self) -> int:
        return len(self.pairs)

    @property
    def num_blocks(self) -> int:
        return len(self.start)

    def block(self, number: int) -> NDArray[Any]:
        """Return a view of the pairs of one block."""
        return self.pairs[self.start[number] : self.stop[number]]

    def words(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the word id and context word id of every pair, for tests and small texts."""
        lengths = self.stop - self.start
        rows = np.repeat(self.row_block * self.block_edge, lengths) + self.pairs["row"]
        cols = np.repeat(self.col_block * self.block_edge, lengths) + self.pairs["col"]
        return rows, cols
