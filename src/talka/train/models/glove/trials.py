"""Trial of training in slices: starting processes, and summing the products of a batch."""

import statistics
import time

import numpy as np

from talka.engine import Embedded, GangWorker
from talka.machine import num_cores
from talka.profile import Trial
from talka.profile.trial import figures_of_process, write_figures
from talka.train.models.glove.slices import BATCH_PAIRS, sum_algorithm

_NUM_SUMS = 300


def _measure() -> dict[str, float]:
    """Run the trial in a fresh process, as starting a gang includes starting the process that forks it."""
    return figures_of_process("talka.train.models.glove.trials")


def _figures() -> dict[str, float]:
    cores = num_cores()
    with Embedded() as engine:
        start = time.perf_counter()
        alone = engine.gang(_sum_batches, size=max(2, cores), backend=None)
        start_s = time.perf_counter() - start - sum(alone[0])
        crowded = engine.gang(_sum_batches, size=2 * cores, backend=None)
    return {
        "start_s": start_s,
        "sum_s": statistics.median(alone[0]),
        "crowded_sum_s": statistics.median(crowded[0]) * cores / (2 * cores),
    }


def _sum_batches(worker: GangWorker) -> list[float]:
    """Return the seconds of several sums of the products of one batch over all ranks."""
    values, algorithm = np.zeros(BATCH_PAIRS, np.float32), sum_algorithm(worker.size)
    worker.all_reduce(values, out=values, algorithm=algorithm)
    seconds = []
    for _ in range(_NUM_SUMS):
        start = time.perf_counter()
        worker.all_reduce(values, out=values, algorithm=algorithm)
        seconds.append(time.perf_counter() - start)
    return seconds


SLICES = Trial(
    "embed/slices",
    "starting processes that train slices, summing the products of a batch over them",
    ("start_s", "sum_s", "crowded_sum_s"),
    _measure,
)

if __name__ == "__main__":
    write_figures(_figures())
