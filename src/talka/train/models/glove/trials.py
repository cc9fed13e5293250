"""Trial of training in slices: starting processes, and summing the products of a batch."""

import statistics
import time

import numpy as np

from talka.engine import Embedded, GangWorker
from talka.machine import num_cores
from talka.profile import Trial
from talka.profile.trial import figures_of_process, write_figures
from talka.train.models.glove.slices import BATCH_PAIRS

_NUM_SUMS = 300


def _measure() -> dict[str, float]:
    """Run the trial in a fresh process, as starting a gang includes loading torch."""
    return figures_of_process("talka.train.models.glove.trials")


def _figures() -> dict[str, float]:
    cores = num_cores()
    with Embedded() as engine:
        start = time.perf_counter()
        alone = engine.gang(_sum_batches, size=max(2, cores))
        start_s = time.perf_counter() - start - sum(alone[0])
        crowded = engine.gang(_sum_batches, size=2 * cores)
    return {
        "start_s": start_s,
        "exchange_s": statistics.median(alone[0]),
        "crowded_exchange_s": statistics.median(crowded[0]) * cores / (2 * cores),
    }


def _sum_batches(worker: GangWorker) -> list[float]:
    """Return the seconds of several sums of the products of one batch over all ranks."""
    import torch
    import torch.distributed as dist

    values = torch.from_numpy(np.zeros(BATCH_PAIRS, np.float32))
    dist.all_reduce(values)
    seconds = []
    for _ in range(_NUM_SUMS):
        start = time.perf_counter()
        dist.all_reduce(values)
        seconds.append(time.perf_counter() - start)
    return seconds


SLICES = Trial(
    "embed/slices",
    "starting processes that train slices, summing the products of a batch over them",
    ("start_s", "exchange_s", "crowded_exchange_s"),
    _measure,
    packages=("torch",),
)

if __name__ == "__main__":
    write_figures(_figures())
