"""GloVe: word vectors whose products approximate logarithms of counts (Pennington et al., 2014).

    blocks -> shuffled visits -> batches -> one kernel call per batch, on several threads

Threads share the table without locks. With one thread the result is reproducible to the bit.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from talka.errors import InvalidValueError, SavedStateError
from talka.threads import ThreadPool
from talka.train.models.glove.base import (
    PAIR_DTYPE,
    DivergedError,
    GloVeConfig,
    PairSource,
    check_whole,
    is_diverged,
)
from talka.train.models.glove.loss import PairSample, weight
from talka.train.models.glove.order import Visits, batches, shuffled, visits_of

# Values per kernel call: 250,000 pairs of 100 dimensions, 30 ms on an idle core. Ctrl+C takes effect
# between two calls, and threads finish an epoch about one call apart.
CALL_VALUES = 25_000_000
SAMPLE_PART = 65_536  # pairs of a sample that one thread sums up at a time


class GloVe:
    """Word vectors by weighted least squares on log counts, with AdaGrad in float32.

    >>> model = GloVe(3, 2, seed=1)
    >>> model.vectors().shape
    (3, 2)
    """

    def __init__(
        self, num_words: int, dim: int, *, config: GloVeConfig | None = None, seed: int = 0
    ) -> None:
        check_whole("num_words", num_words, at_least=1)
        check_whole("dim", dim, at_least=1)
        check_whole("seed", seed, at_least=0)
        from talka.train.models.glove.table import new_table

        self.num_words, self.dim, self.seed = num_words, dim, seed
        self.config = config or GloVeConfig()
        self.epochs_done = 0
        self._table = new_table(num_words, dim, seed=seed)

    def train_epoch(
        self,
        blocks: PairSource,
        *,
        threads: int = 1,
        epoch: int | None = None,
        advance: Callable[[int], object] = lambda num_pairs: None,
    ) -> float:
        """Train on every pair once; return the mean loss before each step.

        epoch
            Number of this epoch, from 0; the order of pairs depends on it. The next one by default.
        advance
            Called in this thread, about ten times per second, with the number of pairs trained
            since the last call.
        """
        check_whole("threads", threads, at_least=1)
        check_blocks(blocks, num_words=self.num_words)
        epoch = self.epochs_done if epoch is None else epoch
        visits = visits_of(blocks, visit_pairs=self.config.visit_pairs)
        visits = shuffled(visits, seed=self.seed, epoch=epoch)
        max_pairs = min(CALL_VALUES // self.dim, blocks.num_pairs // (4 * threads)) + 1
        work = list(batches(visits, max_pairs=max_pairs))
        train = self._kernel_call(blocks)
        losses = []
        with ThreadPool(threads) as pool:
            calls: Iterable[Future[float]] = (pool.submit(train, batch) for batch in work)
            if threads > 1:  # all at once: in `pool.map`'s window one slow thread stalls the others
                calls = list(calls)
            for batch, call in zip(work, calls, strict=True):
                loss = call.result()
                num_pairs = int((batch[:, 1] - batch[:, 0]).sum())
                self._check_loss(loss, num_pairs, epoch)
                losses.append(loss)
                advance(num_pairs)
        self.epochs_done = epoch + 1
        return math.fsum(losses) / blocks.num_pairs

    def _kernel_call(self, blocks: PairSource) -> Callable[[Visits], float]:
        from talka.train.models.glove.kernels import Rates, train_visits
        from talka.train.models.glove.table import num_lines

        pairs = np.asarray(blocks.pairs).view(np.uint32).reshape(-1, 2)
        pairs.flags.writeable = False  # mapped or not, the same compiled kernel
        lines = (0,) * num_lines(self.dim)
        rates = Rates.of(self.config)
        return lambda visits: float(train_visits(self._table, lines, pairs, visits, rates))

    def _check_loss(self, loss: float, num_pairs: int, epoch: int) -> None:
        if loss < 0:
            raise InvalidValueError("pairs", "a word number too large", f"below {self.num_words}")
        if is_diverged(loss, num_pairs):
            raise DivergedError(epoch, self.config.learning_rate)

    def evaluate(self, sample: PairSample, *, threads: int = 1) -> float:
        """Return the mean loss on a fixed sample, with the same bits for any number of threads."""
        from talka.train.models.glove.kernels import sample_loss

        check_whole("threads", threads, at_least=1)
        for words in (sample.rows, sample.cols):
            if len(words) == 0 or words.min() < 0 or words.max() >= self.num_words:
                raise InvalidValueError("sample", words, f"words from 0 to {self.num_words - 1}")

        def loss_from(start: int) -> float:
            part = slice(start, start + SAMPLE_PART)
            counts = sample.counts[part].astype(np.float64)
            weights = weight(counts, x_max=self.config.x_max, alpha=self.config.alpha)
            rows, cols = sample.rows[part], self.num_words + sample.cols[part]
            return float(sample_loss(self._table, rows, cols, np.log(counts), weights))

        with ThreadPool(threads) as pool:
            parts = pool.map(loss_from, range(0, len(sample.rows), SAMPLE_PART))
            loss = math.fsum(parts)  # exactly rounded, so the order does not matter
        if is_diverged(loss, len(sample.rows)):
            raise DivergedError(max(0, self.epochs_done - 1), self.config.learning_rate)
        return loss / len(sample.rows)

    def vectors(self) -> NDArray[np.float32]:
        """Return word plus context vector of every word, like GloVe's reference program."""
        words, contexts = self._table[: self.num_words], self._table[self.num_words :]
        return words[:, 0, : self.dim] + contexts[:, 0, : self.dim]

    def save(self, path: Path) -> None:
        """Write all that training needs to continue, atomically."""
        from talka.train.models.glove.state import write_state

        facts = {
            "seed": self.seed,
            "epochs_done": self.epochs_done,
            "config": dataclasses.asdict(self.config),
        }
        write_state(path, self._table, dim=self.dim, facts=facts)

    @classmethod
    def load(cls, path: Path) -> "GloVe":
        """Load a saved model; with one thread training continues to the bit."""
        from talka.train.models.glove.state import read_state

        table, facts = read_state(path)
        model = cls.__new__(cls)
        model._table = table
        model.num_words, model.dim = facts["num_words"], facts["dim"]
        try:
            model.seed, model.epochs_done = int(facts["seed"]), int(facts["epochs_done"])
            model.config = GloVeConfig(**facts["config"])
        except (LookupError, TypeError, ValueError) as error:
            raise SavedStateError(str(path), f"is not a saved model ({error})") from error
        return model


def check_blocks(blocks: PairSource, *, num_words: int) -> None:
    """Raise InvalidValueError for blocks that are empty or would lead the kernel out of its arrays."""
    start, stop = np.asarray(blocks.start), np.asarray(blocks.stop)
    check_whole("num_pairs", blocks.num_pairs, at_least=1)
    if blocks.num_words != num_words:
        raise InvalidValueError("blocks.num_words", blocks.num_words, f"the model's, {num_words}")
    if blocks.pairs.dtype != PAIR_DTYPE or not blocks.pairs.flags.c_contiguous:
        raise InvalidValueError("blocks.pairs", blocks.pairs.dtype, f"contiguous {PAIR_DTYPE}")
    inside = np.all((start >= 0) & (start <= stop) & (stop <= len(blocks.pairs)))
    covered = int((stop - start).sum())
    if not inside or covered != blocks.num_pairs:
        allowed = f"blocks inside {len(blocks.pairs)} pairs, {blocks.num_pairs} pairs in total"
        raise InvalidValueError("blocks", f"{len(start)} blocks of {covered} pairs", allowed)
    if np.any(blocks.row_block < 0) or np.any(blocks.col_block < 0):
        raise InvalidValueError("blocks", "one with a negative number", "numbered from 0")
