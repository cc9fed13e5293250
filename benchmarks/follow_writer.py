"""A run for `benchmarks.follow`: keeps one core busy and emits events at a steady rate.

    python -m benchmarks.follow_writer FOLDER SECONDS EVENTS_PER_SECOND

Prints seconds and CPU seconds from the first event to the last. Half of the events are training
steps of four ranks, the others are tasks, costs, norms and progress.
"""

import itertools
import json
import sys
import time
from pathlib import Path

from talka.engine.events import TasksRan
from talka.events import Measured, PhaseAdvanced, Run, Stream
from talka.train.events import ResidualNorm, StepDone

NUM_RANKS = 4


def mixed(driver, ranks):
    """Yield one emission after the other, forever, as (stream, event)."""
    for step in itertools.count(1):
        for rank, stream in enumerate(ranks):
            yield stream, StepDone(step, 401_312, 401_312, 0.0312 + rank, 0.0021, 0.0113, 0.0014)
            yield stream, Measured("step/exchange", 401_312.0, 0.0148)
            if step % 4 == 0:
                yield stream, ResidualNorm(step, 0.731 + step)
        now_s = time.time()
        for worker in range(2):
            yield driver, TasksRan("read", f"process-{worker}", 3, now_s - 1, now_s, 0.9, 250_000)
        if step % 10 == 0:
            yield driver, PhaseAdvanced("train", float(step))


def main():
    root, seconds, rate = Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    with Run("followed", {}, root=root) as run:
        ranks = [Stream(run.dir / f"events.rank-{rank}.jsonl") for rank in range(NUM_RANKS)]
        events = mixed(run.stream, ranks)
        num_emitted = 0
        start_s, start_cpu_s = time.monotonic(), time.process_time()
        with run.stream.phase("train", unit="steps"):
            while (passed_s := time.monotonic() - start_s) < seconds:
                while num_emitted < passed_s * rate:
                    stream, event = next(events)
                    stream.emit(event)
                    num_emitted += 1
                sum(range(5_000))  # the work of the run
        taken = {
            "seconds": time.monotonic() - start_s,
            "cpu_s": time.process_time() - start_cpu_s,
            "num_events": num_emitted,
        }
    print(json.dumps(taken))


if __name__ == "__main__":
    main()
