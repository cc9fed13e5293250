"""Start a Ray cluster over all hosts of a lab, and run programs on a graph. Runs on every host.

`python -m tests.graph.lab_hosts_script FOLDER`: host 0 writes the results. In the last run Ray on
host 1 is killed after a superstep.
"""

import json
import sys
from pathlib import Path

import numpy as np

from benchmarks.ray_hosts import on_hosts
from talka.engine.events import TaskAgain
from talka.events import Stream
from talka.graph import Graph, RunOptions, run_program
from talka.graph.events import SuperstepDone
from tests.graph.programs import levels, pagerank

NUM_PARTITIONS = 4
RUNS = [("levels", levels, None), ("pagerank", pagerank, None), ("lost", pagerank, 2)]


def graph():
    """Large enough that values lie with machines, not with the driver."""
    random = np.random.default_rng(3)
    return Graph.from_edges(tuple(random.integers(0, 60_000, (2, 600_000))))


class Watching(Stream):
    """Counts tasks that run again; kills a host's Ray when the superstep `loss` is over."""

    def __init__(self, machines, loss):
        super().__init__()
        self.machines, self.loss = machines, loss
        self.num_again = 0

    def emit(self, event):
        self.num_again += isinstance(event, TaskAgain)
        if isinstance(event, SuperstepDone) and event.superstep == self.loss:
            self.loss = None
            self.machines.kill(1)


def drive(address, machines):
    from talka.engine import OnRay

    given, again = graph(), {}
    for name, program, loss in RUNS:
        events = Watching(machines, loss)
        with OnRay(address, events=events) as engine:
            options = RunOptions(engine=engine, num_partitions=NUM_PARTITIONS, events=events)
            values = run_program(given, program(), options).values
        np.save(Path(sys.argv[1], f"{name}.npy"), values)
        again[name] = events.num_again
    Path(sys.argv[1], "again.json").write_text(json.dumps(again))


if __name__ == "__main__":
    on_hosts(drive)
