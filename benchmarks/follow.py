"""What does following a run cost?

    python -m benchmarks.follow --preset smoke          # some seconds
    python -m benchmarks.follow --preset full --json FILE --markdown FILE     # 4 minutes

A process keeps one core busy and emits 1,000 events per second into five files
(`benchmarks.follow_writer`). Every half second a reader brings itself up to date, as a live page does:
it reads events and all sums that the sections of the page show. It follows the run (`follow`), or it
reads the run again from the start each time (`read_run`); each reader has a run of its own.

The share of the run is the reader's CPU seconds over the CPU seconds of the run. The share of a core is
the reader's CPU seconds over the seconds that the run took.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness import arguments, publish
from talka.events import follow, read_run
from talka.report import folds_of
from talka.report.bars import TimelineBars
from talka.report.step_series import StepSeries
from talka.report.summary import Totals
from talka.report.superstep_series import SuperstepSeries
from talka.report.troubles import Troubles
from talka.report.unknown_kinds import UnknownKinds
from talka.report.workers import WorkerShares

PRESETS = {"smoke": {"seconds": 2}, "full": {"seconds": 120}}
EVENTS_PER_S = 1_000
EVERY_S = 0.5


def sums_of(record):
    """Read all that the sections of a page show, without drawing it."""
    steps = record.fold(StepSeries)
    return (
        record.status,
        record.comparisons(),
        record.fold(Totals).num_tasks,
        record.fold(Troubles).num_failures,
        (steps.steps(), steps.norms(), steps.num_workers),
        record.fold(SuperstepSeries).supersteps,
        record.fold(TimelineBars).bars(record.last_s or 0.0),
        record.fold(WorkerShares).window_s,
        record.fold(UnknownKinds).counts,
    )


def following(run_dir):
    follower = follow(run_dir, folds=folds_of(), keep_events=False)

    def update():
        follower.poll()
        return follower.record

    return update


def reading_again(run_dir):
    return lambda: read_run(run_dir)


def measured(reader, seconds):
    """Run the writer beside a reader; return what both took, and what the reader saw at the end."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.follow_writer", folder]
        writer = subprocess.Popen(
            [*command, str(seconds), str(EVENTS_PER_S)], stdout=subprocess.PIPE, text=True
        )
        try:
            while not (found := list(Path(folder).glob("*/events.jsonl"))):
                time.sleep(0.01)
            update = reader(found[0].parent)
            cpu_s, num_polls, is_running = 0.0, 0, True
            while is_running:
                time.sleep(EVERY_S)
                start_s = time.process_time()
                record = update()
                sums_of(record)
                cpu_s += time.process_time() - start_s
                num_polls += 1
                is_running = record.status == "running"
            written = json.loads(writer.communicate()[0])
        finally:
            writer.kill()
            writer.wait()
        num_read = sum(record.num_by_kind.values())
        if num_read < written["num_events"]:
            raise AssertionError(f"read {num_read} of {written['num_events']} events")
    return {**written, "reader_cpu_s": cpu_s, "num_polls": num_polls}


def row(name, taken, least_cpu_s):
    return {
        "reader": name,
        "CPU/best": f"{taken['reader_cpu_s'] / least_cpu_s:.1f}",
        "share of the run": f"{taken['reader_cpu_s'] / taken['cpu_s']:.2%}",
        "share of a core": f"{taken['reader_cpu_s'] / taken['seconds']:.2%}",
        "CPU s": f"{taken['reader_cpu_s']:.3f}",
        "us per event": f"{1e6 * taken['reader_cpu_s'] / taken['num_events']:.1f}",
        "polls": taken["num_polls"],
        "events": f"{taken['num_events']:,}",
        "run s": f"{taken['seconds']:.1f}",
        "run CPU s": f"{taken['cpu_s']:.1f}",
    }


def main():
    args = arguments(__doc__, PRESETS)
    seconds = PRESETS[args.preset]["seconds"]
    readers = {"follow": following, "read_run each time": reading_again}
    taken = {name: measured(reader, seconds) for name, reader in readers.items()}
    least_cpu_s = min(one["reader_cpu_s"] for one in taken.values())
    rows = [row(name, one, least_cpu_s) for name, one in taken.items()]
    tables = {f"A run of {EVENTS_PER_S:,} events per second": rows}
    publish(args, __doc__.splitlines()[0], tables)


if __name__ == "__main__":
    main()
