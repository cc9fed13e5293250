"""How fast processes train that hold slices of the vectors: tried, by as many processes."""

import statistics
import time

import numpy as np
from numpy.typing import NDArray

from talka.data.text import PairBlocks
from talka.engine import Embedded, GangWorker
from talka.jobs.embeddings.config import EmbedConfig
from talka.train.models.glove.slices import GloVeSlice, columns_of

_NUM_EPOCHS = 5  # others use this machine, too


def sliced_rate(config: EmbedConfig, blocks: PairBlocks) -> float:
    """Pairs a second of `config.workers` processes, with what they wait for one another."""
    with Embedded() as engine:
        seconds = engine.gang(
            _timed, config, np.asarray(blocks.pairs), blocks.index,
            (blocks.num_words, blocks.block_edge), size=config.workers,
        )  # fmt: skip
    slowest_s: float = max(seconds)
    return blocks.num_pairs / slowest_s


def _timed(
    worker: GangWorker,
    config: EmbedConfig,
    pairs: NDArray[np.void],
    index: NDArray[np.int64],
    size: tuple[int, int],
) -> float:
    import torch
    import torch.distributed as dist

    def sum_over_ranks(values: NDArray[np.float32]) -> None:
        dist.all_reduce(torch.from_numpy(values))

    num_words, block_edge = size
    blocks = PairBlocks(pairs, index, num_words=num_words, block_edge=block_edge)
    columns = columns_of(worker.rank, worker.size, config.dim)
    model = GloVeSlice(num_words, config.dim, columns, config=config.glove, seed=config.seed)
    model.train_epoch(blocks, sum_over_ranks, epoch=0)  # compiles, and brings the model into memory
    seconds = []
    for epoch in range(1, 1 + _NUM_EPOCHS):
        dist.barrier()
        start = time.perf_counter()
        model.train_epoch(blocks, sum_over_ranks, epoch=epoch)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)
