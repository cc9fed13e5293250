"""Operation parallelism: each process holds a slice of the coordinates of all vectors.

    batch of pairs -> local partial products -> summed over all ranks -> the same steps on every slice

Only the partial products are exchanged, 4 bytes per pair in any dimension. A row of the table holds
vector, bias and one (see `table.py`), so a slice is a range of its columns: the products of the slices
add up to the product of the rows, and a step of one column does not depend on another column.

The products of a batch are computed before any of its steps, so one process with the same batches
computes the same result, up to the rounding of the sums.
"""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.errors import SavedStateError
from talka.network import LOOPBACK, Network
from talka.network.algorithms import algorithm_cost, cheapest_algorithm
from talka.train.models.glove.base import (
    DivergedError,
    GloVeConfig,
    PairSource,
    check_whole,
    is_diverged,
)
from talka.train.models.glove.kernels import LANES, Rates, apply_steps, gather, partial_products
from talka.train.models.glove.loss import PairSample, weight
from talka.train.models.glove.order import shuffled, visits_of
from talka.train.models.glove.state import read_state, write_state
from talka.train.models.glove.table import Table, new_columns

Sum = Callable[[NDArray[np.float32]], None]
"""Function that replaces an array by its sum over all ranks, in place."""

BATCH_PAIRS = 16_384
"""Pairs per exchange of products: 64 kB, so that headers are 1% and the wait is short."""

HEADER_BYTES = 32
"""Bytes that channels add to one message."""


class ColumnRange(NamedTuple):
    """The columns of the table that a rank holds, out of `dim` of the vector, bias and one."""

    start: int
    stop: int


def columns_of(rank: int, size: int, dim: int) -> ColumnRange:
    """Return a rank's share of `dim + 2` columns; shares differ by at most one column.

    >>> [columns_of(rank, 3, 100) for rank in range(3)]
    [ColumnRange(start=0, stop=34), ColumnRange(start=34, stop=68), ColumnRange(start=68, stop=102)]
    """
    bounds = [share * (dim + 2) // size for share in range(size + 1)]
    return ColumnRange(bounds[rank], bounds[rank + 1])


def sum_algorithm(num_workers: int) -> str:
    """Return how products are summed over the ranks of one machine: as is fastest for a batch."""
    return cheapest_algorithm("all_reduce", _one_machine(num_workers), 4 * BATCH_PAIRS)


def predicted_bytes(num_pairs: int, num_rounds: int, num_workers: int) -> float:
    """Return the bytes that all ranks together send for the products of `num_pairs` pairs."""
    network, algorithm = _one_machine(num_workers), sum_algorithm(num_workers)
    num_hops = 1 if algorithm == "gathered" else 2
    headers = num_rounds * num_hops * num_workers * (num_workers - 1) * HEADER_BYTES
    return algorithm_cost("all_reduce", algorithm, network, 4 * num_pairs).total_bytes + headers


def _one_machine(num_workers: int) -> Network:
    return Network.equal(LOOPBACK, num_workers, num_hosts=1)


class GloVeSlice:
    """One rank's share of a GloVe model."""

    def __init__(
        self,
        num_words: int,
        dim: int,
        columns: ColumnRange,
        *,
        config: GloVeConfig,
        seed: int,
        batch_pairs: int = BATCH_PAIRS,
    ) -> None:
        check_whole("batch_pairs", batch_pairs, at_least=config.visit_pairs)
        self.num_words, self.dim, self.columns = num_words, dim, columns
        self.config, self.seed, self._batch_pairs = config, seed, batch_pairs
        self._table: Table = new_columns(num_words, dim, columns.start, columns.stop, seed=seed)
        self._lines = (0,) * (self._table.shape[2] // LANES)

    def train_epoch(
        self,
        blocks: PairSource,
        sum_over_ranks: Sum,
        *,
        epoch: int,
        advance: Callable[[int], object] = lambda num_pairs: None,
    ) -> float:
        """Train on every pair once; return the mean loss before each step, equal on every rank."""
        losses = []
        for rows, cols, logs, weights in self._batches(blocks, epoch):
            products = np.empty(len(rows), np.float32)
            partial_products(self._table, self._lines, rows, cols, products)
            sum_over_ranks(products)
            errors = products - logs
            slopes = weights * errors
            loss = 0.5 * float(np.dot(slopes.astype(np.float64), errors))
            if is_diverged(loss, len(rows)):
                raise DivergedError(epoch, self.config.learning_rate)
            losses.append(loss)
            slopes *= np.float32(self.config.learning_rate)
            apply_steps(self._table, self._lines, rows, cols, slopes)
            advance(len(rows))
        return math.fsum(losses) / blocks.num_pairs

    def compile(self) -> None:
        """Compile or load the kernels, so that the first batch does not wait for them."""
        no_words, no_values = np.empty(0, np.uint64), np.empty(0, np.float32)
        partial_products(self._table, self._lines, no_words, no_words, no_values)
        apply_steps(self._table, self._lines, no_words, no_words, no_values)
        visits, pairs = np.empty((0, 4), np.int64), np.empty((0, 2), np.uint32)
        pairs.flags.writeable = False
        buffers = (no_words, no_words.copy(), no_values, no_values.copy())
        gather(pairs, visits, 0, Rates.of(self.config), np.uint64(self.num_words), buffers)

    def evaluate(self, sample: PairSample, sum_over_ranks: Sum) -> float:
        """Return the mean loss on a fixed sample."""
        losses = []
        for start in range(0, len(sample.rows), BATCH_PAIRS):
            part = slice(start, start + BATCH_PAIRS)
            rows = sample.rows[part].astype(np.uint64)
            cols = (self.num_words + sample.cols[part]).astype(np.uint64)
            products = np.empty(len(rows), np.float32)
            partial_products(self._table, self._lines, rows, cols, products)
            sum_over_ranks(products)
            counts = sample.counts[part].astype(np.float64)
            weights = weight(counts, x_max=self.config.x_max, alpha=self.config.alpha)
            losses.append(float(0.5 * np.sum(weights * (products - np.log(counts)) ** 2)))
        return math.fsum(losses) / len(sample.rows)

    def vectors(self) -> NDArray[np.float32]:
        """Return the coordinates that this rank holds of all word plus context vectors."""
        width = max(0, min(self.columns.stop, self.dim) - self.columns.start)
        words, contexts = self._table[: self.num_words], self._table[self.num_words :]
        return words[:, 0, :width] + contexts[:, 0, :width]

    def save(self, path: Path) -> None:
        """Write this slice, atomically."""
        facts = {"columns": list(self.columns), "of": self.dim}
        write_state(path, self._table, dim=self.columns.stop - self.columns.start - 2, facts=facts)

    def load(self, path: Path) -> None:
        """Continue from a saved slice."""
        table, facts = read_state(path)
        if facts.get("columns") != list(self.columns) or facts.get("of") != self.dim:
            problem = "holds other coordinates: use the number of workers that saved it"
            raise SavedStateError(str(path), problem)
        self._table = table

    def _batches(self, blocks: PairSource, epoch: int) -> Iterator[tuple[Any, Any, Any, Any]]:
        """Yield rows, columns, logarithms and weights of whole visits, valid until the next batch."""
        visits = visits_of(blocks, visit_pairs=self.config.visit_pairs)
        visits = shuffled(visits, seed=self.seed, epoch=epoch)
        pairs = np.asarray(blocks.pairs).view(np.uint32).reshape(-1, 2)
        pairs.flags.writeable = False
        rates = Rates.of(self.config)
        buffers = (
            np.empty(self._batch_pairs, np.uint64),
            np.empty(self._batch_pairs, np.uint64),
            np.empty(self._batch_pairs, np.float32),
            np.empty(self._batch_pairs, np.float32),
        )
        visit = 0
        while visit < len(visits):
            visit, count = gather(pairs, visits, visit, rates, np.uint64(self.num_words), buffers)
            yield tuple(buffer[:count] for buffer in buffers)  # type: ignore[misc]  # four of them
