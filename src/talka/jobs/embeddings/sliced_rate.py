"""How fast processes train that hold slices of the vectors, from a trial of one slice."""

import math
import statistics
import time

import numpy as np
from numpy.typing import NDArray

from talka.data.text import PairBlocks
from talka.jobs.embeddings.config import EmbedConfig
from talka.machine import num_cores
from talka.train.models.glove.slices import BATCH_PAIRS, GloVeSlice, columns_of

_NUM_EPOCHS = 5  # one alone can be distorted by other work on this machine
_EXCHANGE_S = 0.0009
"""Seconds in which processes of one machine sum the products of a batch with gloo, each on a core of
its own. Most of it is waiting for a process to wake up."""
_CROWDED_EXCHANGE_S = 0.0035
"""The same with two processes per core, and for each further one: they wait for a turn."""


def sliced_rate(config: EmbedConfig, blocks: PairBlocks) -> float:
    """Pairs per second of `config.workers` processes that exchange their products.

    One slice is trained here, with nothing to exchange; all slices are equally wide. Workers beyond
    the number of cores take turns.
    """
    crowding = max(1.0, config.workers / num_cores())
    exchange_s = _EXCHANGE_S if crowding == 1 else crowding * _CROWDED_EXCHANGE_S
    num_batches = math.ceil(blocks.num_pairs / BATCH_PAIRS)
    seconds = crowding * _trained_s(config, blocks) + num_batches * exchange_s
    return blocks.num_pairs / seconds


def _trained_s(config: EmbedConfig, blocks: PairBlocks) -> float:
    """Median seconds of an epoch of one slice."""
    columns = columns_of(0, config.workers, config.dim)
    model = GloVeSlice(blocks.num_words, config.dim, columns, config=config.glove, seed=config.seed)
    model.train_epoch(blocks, _keep, epoch=0)  # compiles, and brings the model into memory
    seconds = []
    for epoch in range(1, 1 + _NUM_EPOCHS):
        start = time.perf_counter()
        model.train_epoch(blocks, _keep, epoch=epoch)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def _keep(products: NDArray[np.float32]) -> None:
    """Stand in for the sum over all ranks."""
