"""The loss, and the fixed sample of pairs on which models are compared.

    loss of a pair = 0.5 * w(count) * (<word, context> + both biases - log count) ** 2

The mean loss during an epoch is misleading for comparing orders of pairs: an order that groups similar
pairs looks best and learns worst. The loss on one fixed sample, evaluated between epochs, is fair.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.train.models.glove.base import PairSource, check_whole

Floats = NDArray[np.float64]


def weight(
    counts: NDArray[np.floating] | float, *, x_max: float = 100.0, alpha: float = 0.75
) -> Floats:
    """Return the weight of pairs: low for rare ones, which are mostly noise, and at most 1.

    >>> weight(np.array([1.0, 16.0, 100.0, 1000.0]), x_max=16.0).tolist()
    [0.125, 1.0, 1.0, 1.0]
    """
    return np.minimum(1.0, (np.asarray(counts, np.float64) / x_max) ** alpha)


class PairSample(NamedTuple):
    """A sample of pairs, with words numbered over all blocks."""

    rows: NDArray[np.int64]
    cols: NDArray[np.int64]
    counts: NDArray[np.float32]


def fixed_sample(blocks: PairSource, *, size: int = 1_000_000, seed: int = 0) -> PairSample:
    """Draw a random sample without repetition, the same for the same pairs and seed.

    It has one pair from each of `size` equal ranges of the data, so every block is represented.
    """
    check_whole("size", size, at_least=1)
    check_whole("num_pairs", blocks.num_pairs, at_least=1)
    start, stop = (np.asarray(bound, np.int64) for bound in (blocks.start, blocks.stop))
    ends = np.cumsum(stop - start)
    edges = (
        np.arange(min(size, blocks.num_pairs) + 1) * blocks.num_pairs // min(size, blocks.num_pairs)
    )
    places = np.random.default_rng(seed).integers(edges[:-1], edges[1:])
    block = np.searchsorted(ends, places, side="right")
    pairs = blocks.pairs[places - (ends - (stop - start))[block] + start[block]]
    rows = np.asarray(blocks.row_block, np.int64)[block] * blocks.block_edge + pairs["row"]
    cols = np.asarray(blocks.col_block, np.int64)[block] * blocks.block_edge + pairs["col"]
    return PairSample(rows, cols, np.ascontiguousarray(pairs["count"]))
