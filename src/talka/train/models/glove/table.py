"""The model in memory: one padded row per word and per context.

    row of a word      vector [dim] | its bias | 1 |             0 ...      then their squares
    row of a context   vector [dim] | 1        | its bias |      0 ...      then their squares

"Squares" are AdaGrad's sums of squared steps. A row is a whole number of cache lines, so a pair
touches only two short ranges of memory. The product of two rows is <word, context> plus both biases,
so a step has no special cases: the sums of squares of the ones are so large that no step changes
them, and the zeros of the padding get steps of zero.
"""

import numpy as np
from numpy.typing import NDArray

from talka.train.models.glove.kernels import LANES

Table = NDArray[np.float32]

# 1 - step / sqrt(this) is 1 for every step below 10^11, and the sum itself never grows. Not infinity:
# the product with an approximate reciprocal root could be NaN.
IMMOVABLE = np.float32(1e38)
FILL_ROWS = 4_096


def num_lines(dim: int) -> int:
    """Return the cache lines of a vector with its bias and its one."""
    return -(-(dim + 2) // LANES)


def empty_table(num_words: int, dim: int) -> Table:
    """Allocate a table that starts at a cache line."""
    shape = (2 * num_words, 2, LANES * num_lines(dim))
    num_values = shape[0] * shape[1] * shape[2]
    values = np.empty(num_values + LANES, np.float32)
    skip = -values.ctypes.data % (4 * LANES) // 4
    return values[skip : skip + num_values].reshape(shape)


def new_table(num_words: int, dim: int, *, seed: int) -> Table:
    """Return vectors and biases uniform in (-0.5, 0.5) / dim and squares of 1, like GloVe's program."""
    return new_columns(num_words, dim, 0, dim + 2, seed=seed)


def new_columns(num_words: int, dim: int, start: int, stop: int, *, seed: int) -> Table:
    """Return the columns from `start` to `stop` of `new_table`: `dim` of vectors, bias, constant 1."""
    table = empty_table(num_words, stop - start - 2)
    random = np.random.default_rng(seed)
    for first in range(0, len(table), FILL_ROWS):  # in pieces: no second table in memory
        part = table[first : first + FILL_ROWS]
        drawn = np.ones((len(part), dim + 2), np.float32)
        drawn[:, : dim + 1] = random.random((len(part), dim + 1), np.float32)
        drawn[:, : dim + 1] -= np.float32(0.5)
        drawn[:, : dim + 1] /= np.float32(dim)
        squares = np.ones_like(drawn)
        squares[:, dim + 1] = IMMOVABLE
        is_context = np.arange(first, first + len(part)) >= num_words
        for values in (drawn, squares):  # a context has its one before its bias
            values[is_context, dim:] = values[is_context, dim:][:, ::-1]
        part[:, 0], part[:, 1] = 0, 1
        part[:, 0, : stop - start] = drawn[:, start:stop]
        part[:, 1, : stop - start] = squares[:, start:stop]
    return table
