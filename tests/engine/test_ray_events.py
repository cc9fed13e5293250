"""Events of ranks on Ray reach the run directory, which the ranks do not know."""

import os
import signal

import pytest

from talka.engine import OnRay
from talka.errors import GangError
from talka.events import Measured, Stream, read_run
from talka.train.events import StepDone
from tests.waiting import wait_until

pytestmark = pytest.mark.slow
STEP = StepDone(1, 2, 3, 4.0, 5.0, 6.0, 7.0)


@pytest.fixture
def driver(ray_cluster, tmp_path):
    stream = Stream(tmp_path / "events.jsonl")
    with OnRay(ray_cluster.address, events=stream) as engine:
        yield engine
    stream.close()


def events_of_ranks(run_dir):
    return [(source, event) for _, source, event in read_run(run_dir).events if source != "driver"]


def test_events_of_all_ranks_are_in_the_run_directory_of_the_driver(driver, tmp_path):
    def main(worker):
        worker.events.emit(STEP)
        with worker.events.phase("train", total=1000) as phase:
            for _ in range(1000):
                worker.events.emit(Measured("step", float(worker.rank), 1.0))
            phase.sent_bytes = 5.0
        return [None if worker.events.dir is None else str(worker.events.dir), os.getppid()]

    heard = []
    with driver.events.listening(heard.append):
        results = driver.gang(main, size=3)
    folders, machines = zip(*results, strict=True)
    assert folders == (None, None, None)
    assert len(set(machines)) == 3
    events = events_of_ranks(tmp_path)
    for rank in range(3):
        own = [event for source, event in events if source == f"rank-{rank}"]
        assert own.count(STEP) == 1
        assert own.count(Measured("step", float(rank), 1.0)) == 1000
        assert [type(event).__name__ for event in own[-2:]] == ["PhaseEnded", "Measured"]
    assert {type(event).__name__ for event in heard} >= {"PhaseStarted", "PhaseEnded", "Measured"}
    assert Measured("step", 0.0, 1.0) in heard
    assert Measured("step", 1.0, 1.0) not in heard


def test_events_of_a_rank_that_fails_are_written(driver, tmp_path):
    def main(worker):
        worker.events.emit(STEP)
        raise ValueError("broke")

    with pytest.raises(GangError, match="broke"):
        driver.gang(main, size=1)
    assert ("rank-0", STEP) in events_of_ranks(tmp_path)


def test_a_rank_that_is_killed_loses_at_most_its_last_batch(driver, tmp_path):
    file = tmp_path / "events.rank-1.jsonl"

    def main(worker):
        if worker.rank == 1:
            worker.events.emit(STEP)
            wait_until(file.exists)  # one machine plays all: the driver has written the batch
            worker.events.emit(Measured("last", None, 1.0))
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(GangError, match="rank 1"):
        driver.gang(main, size=2)
    assert ("rank-1", STEP) in events_of_ranks(tmp_path)
