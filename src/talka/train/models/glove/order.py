"""The order in which pairs are trained.

    blocks -> visits (some pairs of one block) -> shuffled over the epoch -> batches (kernel calls)

Neither of the two simple orders is good. One block after the other keeps both sides of a block in the
cache but learns badly: the pairs of one block move its words too far, and later blocks have to move
them back. A full shuffle learns best but needs a permutation as large as the data, and reads pairs
all over the file. Visits are a compromise: few enough pairs of a block that the epoch is as good as
shuffled, and enough to be read sequentially.

Measured on 45.1 million pairs (69,152 words, 100 dimensions, blocks of 2,048, two threads): loss on
a fixed million pairs after 1 and 3 epochs, and millions of pairs per second

    order                        loss 1    loss 3    speed
    full shuffle                 0.0150    0.0122    10-22
    visits of 256                0.0151    0.0122    13-18
    visits of 1,024              0.0151    0.0122    12-20
    visits of 4,096              0.0151    0.0122    13-23
    visits of 16,384             0.0152    0.0122    10-21
    whole blocks                 0.0386    0.0154    12-27

and, for visits of 1,024 against a full shuffle on another sample, losses of 0.01499 and 0.01496 after
1 epoch, 0.01208 and 0.01210 after 3, 0.00685 and 0.00686 after 15, with 14.9% and 14.8% of analogies
correct (speeds are from a shared machine, too noisy to rank the orders). As the kernel prefetches
rows, the cache is a weak reason for blocks: one thread trains 10.3, 9.1, 8.7 and 8.3 million pairs per
second with blocks of 1,024, 2,048, 8,192 and 32,768 words; the losses are the same.
With 10,533 words and 2.9 million pairs, visits of 1,024 are within 0.4% of a full shuffle after 1, 3
and 15 epochs, less than the difference between two seeds.
"""

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from talka.train.models.glove.base import PairSource

Visits = NDArray[np.int64]
"""One row per visit: start, stop (positions in `pairs`), first row word, first column word."""


def visits_of(blocks: PairSource, *, visit_pairs: int) -> Visits:
    """Cut every block into visits of at most `visit_pairs` pairs, in the order of the blocks."""
    start, stop = (np.asarray(bound, np.int64) for bound in (blocks.start, blocks.stop))
    num_visits = -(-(stop - start) // visit_pairs)
    block = np.repeat(np.arange(len(start)), num_visits)
    first_visit = np.repeat(np.cumsum(num_visits) - num_visits, num_visits)
    visits = np.empty((len(block), 4), np.int64)
    visits[:, 0] = start[block] + (np.arange(len(block)) - first_visit) * visit_pairs
    visits[:, 1] = np.minimum(visits[:, 0] + visit_pairs, stop[block])
    visits[:, 2] = np.asarray(blocks.row_block, np.int64)[block] * blocks.block_edge
    visits[:, 3] = np.asarray(blocks.col_block, np.int64)[block] * blocks.block_edge
    return visits


def shuffled(visits: Visits, *, seed: int, epoch: int) -> Visits:
    """Return the visits in the random order of this epoch."""
    order = np.random.default_rng([seed, epoch]).permutation(len(visits))
    return visits[order]


def batches(visits: Visits, *, max_pairs: int) -> Iterator[Visits]:
    """Yield groups of successive visits with about `max_pairs` pairs each, one per kernel call."""
    ends = np.cumsum(visits[:, 1] - visits[:, 0])
    if len(ends) == 0:
        return
    num_batches = max(1, round(int(ends[-1]) / max_pairs))
    targets = int(ends[-1]) * np.arange(1, num_batches) // num_batches
    cuts = [0, *np.unique(np.searchsorted(ends, targets) + 1).tolist(), len(visits)]
    for start, stop in itertools.pairwise(cuts):
        if start < stop:
            yield visits[start:stop]
