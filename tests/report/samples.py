"""Runs to report on, written by the real Run and Stream under a clock that tests turn by hand."""

import json
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest import mock

from talka.engine.events import RankLost, Spilled, TaskAgain, TasksRan, WorkerLost
from talka.events import Failure, Measured, PhaseStarted, Predicted, Run, Stream
from talka.train.events import ResidualNorm, StepDone

EVIL = """<script>document.title="evil"</script><img src=x onerror='document.title="evil"'>[/b]"""
NUM_RANKS = 4
NUM_WORKERS = 2
NUM_STEPS = 5


class Clock:
    """Stands in for the `time` module inside of talka.events."""

    def __init__(self) -> None:
        self.now_s = 1_794_700_000.0
        self.strftime = time.strftime

    def time(self) -> float:
        return self.now_s

    perf_counter = monotonic = time


@contextmanager
def turned_by_hand() -> Iterator[Clock]:
    clock = Clock()
    with (
        mock.patch("talka.events.stream.time", clock),
        mock.patch("talka.events.run.time", clock),
    ):
        yield clock


class SampleError(Exception):
    pass


def write_run(root: Path, *, error: str | None = None) -> Path:
    """Write a run with tasks on 2 workers and training on 4 ranks; it fails at the end with `error`."""
    config = {"dim": 100, "link": {"rate_bits_per_s": 1e8}, "compressor": "topk:0.01+ef"}
    with turned_by_hand() as clock:
        run = Run("word-vectors", config, root=root)
        with suppress(SampleError), run:
            _predict(run.stream)
            _count_words(run.stream, clock)
            _lose_a_worker(run.stream, clock)
            _train(run, clock)
            if error is not None:
                raise SampleError(error)
            run.finish({"num_words": 16_300_000, "loss": 0.0312, "train_s": 6.4, "sent_bytes": 8e6})
    return run.dir


_open_streams: dict[Path, Stream] = {}


def write_unfinished_run(root: Path) -> Path:
    """A job of this process that is in the middle of a phase."""
    with turned_by_hand() as clock:
        run = Run("half-way", {}, root=root)
        run.stream.emit(Predicted("count", 100.0, 1.0, "a guess"))
        run.stream.emit(PhaseStarted("count", 10, "rows"))
        clock.now_s += 3
        run.stream.emit(TasksRan("split", "worker-0", 1, clock.now_s - 2, clock.now_s, 2.0, 10))
    _open_streams[run.dir] = run.stream
    return run.dir


def kill(run_dir: Path) -> None:
    """Leave the run as a killed process does: its file unlocked, its last line incomplete."""
    _open_streams.pop(run_dir).close()
    with (run_dir / "events.jsonl").open("a") as file:
        file.write('{"event": "TasksRan", "time_s": 17')


def _predict(stream: Stream) -> None:
    stream.emit(Predicted("read", None, 2.0, "3.1 GB at 1.5 GB/s from disk"))
    stream.emit(Predicted("count", 4.2e6, 6.5, "16.3 M words, combined before the exchange"))
    stream.emit(Predicted("graph", 2.6e7, 3.0, "9.8 M pairs of words, 12 bytes each after the sum"))
    reason = "two-phase, 1% of 2.9 M values with Rice-coded indices, 100 Mbit/s"
    stream.emit(Predicted("step/exchange", 8e6, 2.1, reason))


def _count_words(stream: Stream, clock: Clock) -> None:
    seeded = random.Random(7)
    for part, names, sent_bytes in [
        ("read", ["read_lines"], None),
        ("count", ["split", "count"], 4.4e6),
        ("graph", ["pairs", "merge"], 8.1e7),
    ]:
        with stream.phase(part, total=40, unit="tasks") as phase:
            for _ in range(20):
                start_s = clock.now_s
                clock.now_s += 0.2
                for worker in range(NUM_WORKERS):
                    busy_s = seeded.uniform(0.08, 0.19)
                    name = seeded.choice(names)
                    end_s = start_s + busy_s
                    stream.emit(
                        TasksRan(name, f"worker-{worker}", 12, start_s, end_s, busy_s, 250_000)
                    )
                    phase.advance()
            phase.sent_bytes = sent_bytes
        clock.now_s += 0.1


def _lose_a_worker(stream: Stream, clock: Clock) -> None:
    stream.emit(WorkerLost("worker-1", "killed by signal 9 (out of memory?)"))
    for task in range(17):
        stream.emit(TaskAgain(task, "merge", "its output was on worker-1, which was lost"))
    stream.emit(TaskAgain(3, "split", "raised ConnectionError, attempt 2 of 3"))
    stream.emit(Spilled(1_250_000_000, 1.9))
    clock.now_s += 0.4


def _train(run: Run, clock: Clock) -> None:
    streams = [Stream(run.dir / f"events.rank-{rank}.jsonl") for rank in range(NUM_RANKS)]
    with run.stream.phase("train", total=NUM_STEPS, unit="steps"):
        for step in range(1, NUM_STEPS + 1):
            start_s = clock.now_s
            for rank, stream in enumerate(streams):
                clock.now_s = start_s + 0.02 * rank
                with stream.phase("step", unit="examples"):
                    clock.now_s += 0.8 + 0.05 * rank
                    with stream.phase("step/exchange") as exchange:
                        clock.now_s += 0.35
                        exchange.sent_bytes = 4e5
                compute_s = 0.8 + 0.05 * rank + (30 if step == 1 else 0)
                stream.emit(StepDone(step, 400_000, 400_000, compute_s, 0.02, 0.3, 0.03))
                if step % 2:
                    stream.emit(ResidualNorm(step, 0.5 * step + rank))
            clock.now_s = start_s + 1.4
    for stream in streams:
        stream.close()


def write_evil_run(root: Path) -> Path:
    """Every text of this run tries to become a part of the page."""
    run = Run("evil", {EVIL: EVIL, "list": [EVIL], "nested": {EVIL: 1}}, root=root)
    with suppress(ValueError), run:
        run.finish({EVIL: EVIL})
        run.stream.emit(Predicted(EVIL, 1.0, 1.0, EVIL))
        run.stream.emit(Measured(EVIL, 1.0, 1.0))
        run.stream.emit(TasksRan(EVIL, EVIL, 1, 1.0, 2.0, 1.0, 1))
        run.stream.emit(TaskAgain(1, EVIL, EVIL))
        run.stream.emit(WorkerLost(EVIL, EVIL))
        run.stream.emit(RankLost(1, EVIL, EVIL))
        run.stream.emit(Failure(EVIL, EVIL))
        with run.stream.phase(EVIL):
            pass
        raise ValueError(EVIL)
    config = json.loads((run.dir / "config.json").read_text())
    config |= {"name": EVIL, "host": EVIL, "command": [EVIL], "num_cores": EVIL, "python": EVIL}
    (run.dir / "config.json").write_text(json.dumps(config | {"versions": {EVIL: EVIL}}))
    return run.dir
