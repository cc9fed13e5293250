"""Training with `--parallel dimensions`: a gang of processes, each with a slice of all vectors."""

import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from talka.data.text import load_counted
from talka.engine import Engine, GangWorker
from talka.events import Measured
from talka.jobs.embeddings.config import EmbedConfig
from talka.jobs.embeddings.predictions import SAMPLE_PAIRS_OF_RANKS
from talka.jobs.embeddings.work import WorkFolder
from talka.train.models.glove import fixed_sample
from talka.train.models.glove.slices import GloVeSlice, columns_of, sum_algorithm


def train_slices(
    engine: Engine,
    config: EmbedConfig,
    work: WorkFolder,
    *,
    cost_id: str = "embed/train",
) -> tuple[NDArray[np.float32], dict[str, list[float]]]:
    """Train with `config.workers` processes on the pairs in `work`; return vectors and losses."""
    results = engine.gang(
        _main, config, work, cost_id, time.time(), size=config.workers, backend=None
    )
    losses: dict[str, list[float]] = work.losses()
    return np.hstack(results), losses


def _main(
    worker: GangWorker, config: EmbedConfig, work: WorkFolder, cost_id: str, start_s: float
) -> NDArray[np.float32]:
    algorithm = sum_algorithm(worker.size)

    def sum_over_ranks(values: NDArray[np.float32]) -> None:
        worker.all_reduce(values, out=values, algorithm=algorithm)

    counted = load_counted(work.pairs_dir)
    blocks, losses = counted.pairs, work.losses()
    done = len(losses["loss"])
    columns = columns_of(worker.rank, worker.size, config.dim)
    model = GloVeSlice(
        len(counted.vocabulary), config.dim, columns, config=config.glove, seed=config.seed
    )
    if done:
        model.load(_path(work, done, worker.rank))
    model.compile()
    sample = fixed_sample(blocks, size=SAMPLE_PAIRS_OF_RANKS, seed=config.seed)
    worker.barrier()
    if worker.rank == 0:
        worker.events.emit(Measured(f"{cost_id}/start", None, time.time() - start_s))
    with worker.events.phase(
        cost_id, total=config.epochs * blocks.num_pairs, unit="pairs"
    ) as phase:
        phase.advance(done * blocks.num_pairs)
        before = worker.mailbox.sent_bytes
        for epoch in range(done, config.epochs):
            running_loss = model.train_epoch(
                blocks, sum_over_ranks, epoch=epoch, advance=phase.advance
            )
            losses["running_loss"].append(running_loss)
            losses["loss"].append(model.evaluate(sample, sum_over_ranks))
            with phase.aside("embed/save"):
                model.save(_path(work, epoch + 1, worker.rank))
                worker.barrier()  # all slices are saved: the epoch can be recorded as done
                if worker.rank == 0:
                    work.epoch_done(losses)
        phase.sent_bytes = worker.mailbox.sent_bytes - before
    worker.barrier()
    return model.vectors()


def _path(work: WorkFolder, epoch: int, rank: int) -> Path:
    path = work.model_path(epoch)
    return path.with_name(f"{path.name}.rank-{rank}")
