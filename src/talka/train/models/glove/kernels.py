"""The compiled inner loops: one AdaGrad step per pair, and the loss of a sample.

Kernels release the GIL and never use `parallel=True`: the caller divides the work among threads.
Threads share the table without locks (HOGWILD: Niu et al., arXiv:1106.5730). If two of them write the
same row at once, one of the steps is partly lost. This has no visible effect: on 45.1 million pairs
the losses with two threads and with one agree within 0.1% after 1, 3 and 15 epochs, although 69% of
the pairs involve one of the 2,048 most frequent words.

What made it fast, in millions of pairs per second, one thread, 100 dimensions, fully shuffled pairs:

    plain loop over four arrays (vectors and squares of both sides)     1.3-1.6
    rows of the next pairs prefetched into the cache                    2.7-3.0
    loops that LLVM can vectorize (it could not vectorize the plain
    one): one side after the other, with a length fixed at compile time 8-10
    for comparison: all rows in the second-level cache already          18

Two threads are up to twice as fast. Square root and division are exact; the processor's approximations
would gain 10%. Logarithm and weight are computed on the fly, in about 5% of the time: storing them
would double the data and was no faster. Huge pages change nothing (numpy requests them already).
"""

import math
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]  # ships no types
from numba import types
from numba.extending import intrinsic

from talka.compiled import Kernel, compiled, compiled_with
from talka.train.models.glove.base import BUFFER_PAIRS, GloVeConfig

LANES = 16  # floats per cache line, and per register of the widest kind (AVX-512)
AHEAD = 8  # distance of prefetching in pairs; 4 to 16 are equally fast
OUT_OF_RANGE = -1.0  # returned instead of a loss if a pair refers to a word that does not exist


class Rates(NamedTuple):
    """Options of a step, in the form that kernels take."""

    learning_rate: np.float32
    log_x_max: np.float32
    alpha: np.float32

    @classmethod
    def of(cls, config: GloVeConfig) -> "Rates":
        """Convert the options of a model."""
        log_x_max = np.float32(math.log(config.x_max))
        return cls(np.float32(config.learning_rate), log_x_max, np.float32(config.alpha))


def _compiled(function: Kernel) -> Kernel:
    # Allow reordered sums and fused multiply-adds, which vectorized sums need, and nothing more:
    # infinities and NaN are respected, so that a diverging run shows in its loss.
    return compiled_with(function, fastmath={"reassoc", "contract"})


def _prefetch_code(context: Any, flat: Any, place: Any) -> Any:
    """Prefetch the cache line of `flat[place]` into the second-level cache."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        line = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [line.type, number, number, number])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", (line.type,), kind)
        builder.call(prefetch, [line, number(0), number(2), number(1)])  # read, second level, data
        return context.get_dummy_value()

    return types.void(flat, place), generate


_prefetch: Any = intrinsic(_prefetch_code)


@_compiled
def gather(
    pairs: Any, visits: Any, visit: int, rates: Rates, num_words: Any, batch: Any
) -> tuple[int, int]:
    """Fill the buffers with whole visits; return the next visit and the number of pairs.

    The number is -1 if a pair refers to a word that does not exist.
    """
    # A pair is 8 bytes: two 16-bit word numbers relative to its block, and a float32 count. They are
    # decoded into four arrays, so that the training loop knows the rows of pairs ahead of time and
    # contains no logarithm.
    rows, cols, logs, weights = batch
    counts = pairs.view(np.float32)
    num_pairs = 0
    while visit < len(visits):
        start, stop = visits[visit, 0], visits[visit, 1]
        if num_pairs + stop - start > len(rows):
            break
        first_row, first_col = np.uint64(visits[visit, 2]), np.uint64(visits[visit, 3])
        for pair in range(start, stop):
            words = pairs[pair, 0]  # row in the lower half, column in the upper
            row = first_row + np.uint64(words & np.uint32(0xFFFF))
            col = first_col + np.uint64(words >> np.uint32(16))
            if row >= num_words or col >= num_words:
                return visit, -1
            log = np.log(counts[pair, 1])
            rows[num_pairs] = row
            cols[num_pairs] = num_words + col
            logs[num_pairs] = log
            weights[num_pairs] = min(np.float32(1), np.exp(rates.alpha * (log - rates.log_x_max)))
            num_pairs += 1
        visit += 1
    return visit, num_pairs


@_compiled
def train_visits(table: Any, lines: Any, pairs: Any, visits: Any, rates: Rates) -> float:
    """Train on the pairs of these visits, in order; return the sum of the losses before each step.

    table
        One row per word, then one per context: float32 [2 * num_words, 2, lanes], where [0] is the
        vector and [1] the sums of squared steps (see `table.py`).
    lines
        A tuple with one entry per cache line of a vector. Only its length matters: it is part of
        the type, so that the loops have a fixed length.
    pairs
        uint32 [num_pairs, 2]: the bytes of `PAIR_DTYPE`.
    """
    # A step touches two rows of the table, which are rarely in the cache: a row is fetched while the
    # AHEAD pairs before it are trained. Each row is contiguous, vector and squares together, and
    # padded to whole cache lines, so one prefetch per line covers it.
    #
    # The step is split into short loops over all lanes, each reading and writing few arrays: LLVM
    # vectorizes these, with the trip count known from the type of `lines`. The row's old vector is
    # copied to `old` first, as the context's step needs it after the row was updated.
    num_lanes = LANES * len(lines)
    num_words = np.uint64(table.shape[0] // 2)
    flat = table.reshape(-1)
    rows, cols = np.empty(BUFFER_PAIRS, np.uint64), np.empty(BUFFER_PAIRS, np.uint64)
    logs, weights = np.empty(BUFFER_PAIRS, np.float32), np.empty(BUFFER_PAIRS, np.float32)
    old = np.empty(num_lanes, np.float32)
    loss = 0.0
    visit = 0
    while visit < len(visits):
        visit, num_pairs = gather(
            pairs, visits, visit, rates, num_words, (rows, cols, logs, weights)
        )
        if num_pairs < 0:
            return OUT_OF_RANGE
        for pair in range(num_pairs):
            if pair + AHEAD < num_pairs:
                row_at = rows[pair + AHEAD] * np.uint64(2 * num_lanes)
                col_at = cols[pair + AHEAD] * np.uint64(2 * num_lanes)
                for lane in range(0, 2 * num_lanes, LANES):
                    _prefetch(flat, row_at + np.uint64(lane))
                    _prefetch(flat, col_at + np.uint64(lane))
            row, col = rows[pair], cols[pair]
            dot = np.float32(0)
            for lane in range(num_lanes):
                dot += table[row, 0, lane] * table[col, 0, lane]
            error = dot - logs[pair]
            slope = weights[pair] * error
            loss += np.float32(0.5) * slope * error
            slope *= rates.learning_rate
            for lane in range(num_lanes):
                old[lane] = table[row, 0, lane]
            for lane in range(num_lanes):
                step, squares = slope * table[col, 0, lane], table[row, 1, lane]
                table[row, 0, lane] -= step / np.sqrt(squares)
                table[row, 1, lane] = squares + step * step
            for lane in range(num_lanes):
                step, squares = slope * old[lane], table[col, 1, lane]
                table[col, 0, lane] -= step / np.sqrt(squares)
                table[col, 1, lane] = squares + step * step
    return loss


@_compiled
def partial_products(table: Any, lines: Any, rows: Any, cols: Any, products: Any) -> None:
    """Compute the product of both rows of each pair, over the columns that this table holds."""
    num_lanes = LANES * len(lines)
    for pair in range(len(rows)):
        row, col = rows[pair], cols[pair]
        product = np.float32(0)
        for lane in range(num_lanes):
            product += table[row, 0, lane] * table[col, 0, lane]
        products[pair] = product


@_compiled
def apply_steps(table: Any, lines: Any, rows: Any, cols: Any, slopes: Any) -> None:
    """Apply one AdaGrad step per pair, in order, with given slopes."""
    num_lanes = LANES * len(lines)
    old = np.empty(num_lanes, np.float32)
    for pair in range(len(rows)):
        row, col, slope = rows[pair], cols[pair], slopes[pair]
        for lane in range(num_lanes):
            old[lane] = table[row, 0, lane]
        for lane in range(num_lanes):
            step, squares = slope * table[col, 0, lane], table[row, 1, lane]
            table[row, 0, lane] -= step / np.sqrt(squares)
            table[row, 1, lane] = squares + step * step
        for lane in range(num_lanes):
            step, squares = slope * old[lane], table[col, 1, lane]
            table[col, 0, lane] -= step / np.sqrt(squares)
            table[col, 1, lane] = squares + step * step


@compiled
def sample_loss(table: Any, rows: Any, cols: Any, logs: Any, weights: Any) -> float:
    """Return the sum of the losses of pairs, in float64 and in a fixed order on any machine."""
    loss = 0.0
    for pair in range(len(rows)):
        row, col = rows[pair], cols[pair]
        error = -logs[pair]
        for lane in range(table.shape[2]):
            error += np.float64(table[row, 0, lane]) * np.float64(table[col, 0, lane])
        loss += 0.5 * weights[pair] * error * error
    return loss
