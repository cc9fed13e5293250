"""Training speed with `--parallel dimensions`, estimated from a trial with one slice."""

import math
import statistics
import time

import numpy as np
from numpy.typing import NDArray

from talka.data.text import PairBlocks
from talka.jobs.embeddings.config import EmbedConfig
from talka.machine import num_cores
from talka.profile import this_machine
from talka.train.models.glove.slices import BATCH_PAIRS, GloVeSlice, columns_of
from talka.train.models.glove.trials import SLICES

_NUM_EPOCHS = 5  # one alone can be distorted by other work on this machine


def sliced_rate(config: EmbedConfig, blocks: PairBlocks) -> float:
    """Return the pairs per second of `config.workers` processes that exchange their products.

    One slice is trained without any exchange; all slices are equally wide. Workers beyond the
    number of cores take turns.
    """
    crowding = max(1.0, config.workers / num_cores())
    figures = this_machine().figures(SLICES)
    sum_s = figures["sum_s"] if crowding == 1 else crowding * figures["crowded_sum_s"]
    num_batches = math.ceil(blocks.num_pairs / BATCH_PAIRS)
    seconds = crowding * _epoch_seconds(config, blocks) + num_batches * sum_s
    return blocks.num_pairs / seconds


def _epoch_seconds(config: EmbedConfig, blocks: PairBlocks) -> float:
    """Return the median seconds of an epoch of one slice."""
    columns = columns_of(0, config.workers, config.dim)
    model = GloVeSlice(blocks.num_words, config.dim, columns, config=config.glove, seed=config.seed)
    model.train_epoch(blocks, _keep, epoch=0)  # compiles kernels, touches all memory pages
    seconds = []
    for epoch in range(1, 1 + _NUM_EPOCHS):
        start = time.perf_counter()
        model.train_epoch(blocks, _keep, epoch=epoch)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def _keep(products: NDArray[np.float32]) -> None:
    """Leave the products unchanged, in place of the sum over all ranks."""
