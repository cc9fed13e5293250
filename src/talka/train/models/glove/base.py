"""The interface of the training data, the options of the model, and its errors."""

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from talka.errors import InvalidValueError, TalkaError

PAIR_DTYPE = np.dtype([("row", "<u2"), ("col", "<u2"), ("count", "<f4")])
"""Layout of a pair, equal to `talka.data.text.PAIR`: importing that would load its kernels."""

# The kernel copies whole visits into a buffer of this many pairs: 2,048 pairs are 48 kB in the cache
# beside the rows of the model. The first pairs of a buffer are not prefetched, which is 0.4%.
BUFFER_PAIRS = 2_048


class PairSource(Protocol):
    """Co-occurrence counts in blocks of words x contexts, such as `talka.data.text.PairBlocks`.

    Block b holds `pairs[start[b]:stop[b]]`, shuffled. Word `row_block[b] * block_edge + row` occurred
    near word `col_block[b] * block_edge + col` with the weight `count`. `pairs` has PAIR_DTYPE and
    may be mapped from a file.
    """

    @property
    def num_words(self) -> int: ...
    @property
    def num_pairs(self) -> int: ...
    @property
    def block_edge(self) -> int: ...
    @property
    def pairs(self) -> NDArray[Any]: ...
    @property
    def row_block(self) -> NDArray[np.int64]: ...
    @property
    def col_block(self) -> NDArray[np.int64]: ...
    @property
    def start(self) -> NDArray[np.int64]: ...
    @property
    def stop(self) -> NDArray[np.int64]: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class GloVeConfig:
    """Options of the model."""

    learning_rate: float = 0.05
    """Learning rate of AdaGrad; above about 0.5 training diverges."""

    x_max: float = 100.0
    """Count from which pairs have the weight 1. Lower it for small corpora."""

    alpha: float = 0.75
    """Exponent of the weight of smaller counts: (count / x_max) ** alpha."""

    visit_pairs: int = 1_024
    """Pairs of one block that are trained before another block is visited (see `order.py`);
    1 is a full shuffle."""

    def __post_init__(self) -> None:
        _check_number("learning_rate", self.learning_rate, positive=True)
        _check_number("x_max", self.x_max, positive=True)
        _check_number("alpha", self.alpha, positive=False)
        if not 1 <= self.visit_pairs <= BUFFER_PAIRS:
            allowed = f"a whole number from 1 to {BUFFER_PAIRS}"
            raise InvalidValueError("visit_pairs", self.visit_pairs, allowed)


def _check_number(name: str, value: float, *, positive: bool) -> None:
    if not math.isfinite(value) or value < 0 or (positive and value == 0):
        raise InvalidValueError(name, value, f"a number {'above' if positive else 'of at least'} 0")


def check_whole(name: str, value: int, *, at_least: int) -> None:
    """Raise InvalidValueError for a number below `at_least`."""
    if value < at_least:
        raise InvalidValueError(name, value, f"a whole number of at least {at_least}")


def is_diverged(loss: float, num_pairs: int) -> bool:
    """Return True if the summed loss of `num_pairs` pairs is too large for a model that learns.

    A model of zeros has a loss of at most 0.5 log(count)^2 per pair, about 200 for the largest
    possible count.
    """
    return not loss <= 10_000.0 * num_pairs


class DivergedError(TalkaError):
    """Training diverged, and the model is unusable.

    >>> print(DivergedError(2, 5.0))
    training diverged in epoch 2. The learning rate is 5; try a smaller one (0.05).
    """

    def __init__(self, epoch: int, learning_rate: float) -> None:
        super().__init__(epoch, learning_rate)
        self.epoch, self.learning_rate = epoch, learning_rate

    def __str__(self) -> str:
        return (
            f"training diverged in epoch {self.epoch}. The learning rate is "
            f"{self.learning_rate:g}; try a smaller one ({min(0.05, self.learning_rate / 10):g})."
        )
