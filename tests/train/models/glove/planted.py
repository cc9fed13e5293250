"""Pairs whose counts come from a small known model, in blocks as the trainer wants them."""

from dataclasses import dataclass

import numpy as np

from talka.train.models.glove import PAIR_DTYPE


@dataclass(frozen=True)
class Blocks:
    num_words: int
    block_edge: int
    pairs: np.ndarray
    row_block: np.ndarray
    col_block: np.ndarray
    start: np.ndarray
    stop: np.ndarray

    @property
    def num_pairs(self):
        return len(self.pairs)


def in_blocks(rows, cols, counts, *, num_words, block_edge, seed=0):
    """Pairs in shuffled order, then by block."""
    mixed = np.random.default_rng(seed).permutation(len(rows))
    rows, cols, counts = (np.asarray(side)[mixed] for side in (rows, cols, counts))
    num_edges = -(-num_words // block_edge)
    block = rows // block_edge * num_edges + cols // block_edge
    order = np.argsort(block, kind="stable")
    pairs = np.empty(len(rows), PAIR_DTYPE)
    pairs["row"], pairs["col"] = rows[order] % block_edge, cols[order] % block_edge
    pairs["count"] = counts[order]
    blocks, start = np.unique(block[order], return_index=True)
    stop = np.append(start[1:], len(rows))
    row_block, col_block = blocks // num_edges, blocks % num_edges
    return Blocks(num_words, block_edge, pairs, row_block, col_block, start, stop)


def planted(num_pairs=200_000, *, num_words=700, block_edge=256, dim=8, seed=0):
    """Counts exp(<v, c> + biases + noise), between 0.1 and a few thousand."""
    random = np.random.default_rng(seed)
    places = random.choice(num_words**2, num_pairs, replace=False)
    rows, cols = places // num_words, places % num_words
    vectors, contexts = random.normal(0, 0.5, (2, num_words, dim))
    biases = random.normal(0.5, 0.7, (2, num_words))
    logs = np.einsum("nd,nd->n", vectors[rows], contexts[cols]) + biases[0, rows] + biases[1, cols]
    counts = np.exp(logs + random.normal(0, 0.2, num_pairs))
    return in_blocks(
        rows, cols, np.maximum(counts, 0.1), num_words=num_words, block_edge=block_edge, seed=seed
    )


def all_pairs(blocks):
    """Rows, columns and counts of all pairs, in the order in which they are stored."""
    sizes = blocks.stop - blocks.start
    rows = np.repeat(blocks.row_block, sizes) * blocks.block_edge + blocks.pairs["row"]
    cols = np.repeat(blocks.col_block, sizes) * blocks.block_edge + blocks.pairs["col"]
    return rows, cols, blocks.pairs["count"].astype(np.float64)
