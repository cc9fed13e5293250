"""Losses in the middle of supersteps: only the lost partition is replayed, to the same bits."""

import os
import signal
import threading
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from talka.engine import Embedded
from talka.engine.events import TaskAgain, WorkerLost
from talka.errors import SavedStateError
from talka.graph import Graph, RunOptions, run_program
from talka.graph.events import SuperstepDone
from tests.engine.engines import Recorder
from tests.graph.losing import NUM_PARTITIONS, Losing
from tests.graph.programs import PROGRAMS, distances, labels
from tests.graph.vertex_programs import VERTEX_PROGRAMS


def graph_of(seed=1, size=40, num_edges=120):
    generator = np.random.default_rng(seed)
    ends = generator.integers(0, size, (2, num_edges))
    return Graph.from_edges(tuple(ends), generator.integers(1, 9, num_edges).astype(float))


GRAPH = graph_of()


def run(engine, program, **given):
    options = RunOptions(engine=engine, num_partitions=NUM_PARTITIONS, **given)
    outcome = run_program(GRAPH, program, options)
    return [column.tobytes() for column in outcome.columns.values()], len(outcome.supersteps)


@pytest.mark.parametrize("name", [*PROGRAMS, *VERTEX_PROGRAMS])
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    superstep=st.integers(0, 7),
    partition=st.integers(0, NUM_PARTITIONS - 1),
    every=st.sampled_from([None, 1, 2, 3]),
    how=st.sampled_from(["ranges", "hash", "vertex_cut"]),
)
def test_a_loss_in_any_superstep_changes_no_bit(name, superstep, partition, every, how):
    make = {**PROGRAMS, **VERTEX_PROGRAMS}[name]
    if name in VERTEX_PROGRAMS and how == "vertex_cut":
        how = "hash"
    options = {"partitioning": how, "checkpoint_every": every}
    with Embedded(threads=2) as whole:
        expected = run(whole, make(), **options)
    with Losing(superstep, partition, threads=2) as engine:
        assert run(engine, make(), **options) == expected


@pytest.mark.parametrize("make", [distances, labels], ids=["distances", "labels"])
def test_rounds_alone_are_replayed_to_the_same_bits(make):
    for superstep in range(4):
        with Embedded(threads=2) as whole:
            expected = run(whole, make(order_independent=True))
        with Losing(superstep, 1, threads=2) as engine:
            assert run(engine, make(order_independent=True), checkpoint_every=2) == expected


@pytest.mark.parametrize("every", [None, 2])
def test_only_the_lost_partition_is_replayed_and_only_since_the_checkpoint(every):
    recorder = Recorder()
    with Losing(5, 1, threads=2, events=recorder) as engine:
        run(engine, PROGRAMS["pagerank"](8), partitioning="hash", checkpoint_every=every)
        again = [event.task for event in recorder.events if isinstance(event, TaskAgain)]
        replayed = Counter(engine.partition_of[task] for task in again)
    since = 6 if every is None else 2  # supersteps 0 to 5; or the checkpoint after 4, and 5
    assert replayed == {1: since}


def test_a_killed_worker_process_changes_no_bit():
    """A worker process dies in the middle of a superstep of a Python program."""
    with Embedded(threads=2, processes=2) as whole:
        expected = run(whole, PROGRAMS["levels"](), compiled=False)
    recorder = Recorder()
    with Embedded(threads=2, processes=2, events=recorder) as engine:
        killer = threading.Thread(target=_kill_first_busy, args=(engine,), daemon=True)
        killer.start()
        assert run(engine, PROGRAMS["levels"](), compiled=False) == expected
        killer.join(100)
    assert any(isinstance(event, WorkerLost) for event in recorder.events)


def _kill_first_busy(engine):
    for _ in range(100_000):
        with engine._lock:
            workers = list(engine._workers)
        if workers:
            os.kill(workers[0].pid, signal.SIGKILL)
            return
        time.sleep(0.001)


@pytest.mark.parametrize("name", [*PROGRAMS, *VERTEX_PROGRAMS])
def test_a_run_that_stopped_goes_on_from_its_checkpoint(name, tmp_path):
    make = {**PROGRAMS, **VERTEX_PROGRAMS}[name]
    with Embedded(threads=2) as engine:
        expected, _ = run(engine, make())

    class Stopped(Exception):
        pass

    class Stopping(Recorder):
        def emit(self, event):
            super().emit(event)
            if isinstance(event, SuperstepDone) and event.superstep == 3:
                raise Stopped

    given = {"checkpoint_dir": tmp_path / "saved", "checkpoint_every": 2}
    with Embedded(threads=2) as engine:
        try:
            run(engine, make(), events=Stopping(), **given)
            pytest.fail("the program ends before superstep 3")
        except Stopped:
            pass
    with Embedded(threads=2) as engine:
        recorder = Recorder()
        found, _ = run(engine, make(), events=recorder, resume=True, **given)
    first = next(e for e in recorder.events if isinstance(e, SuperstepDone))
    assert first.superstep == 1  # saved after 0 and 1; stopped in 3
    assert found == expected


class TestDamage:
    @pytest.fixture
    def saved(self, tmp_path):
        given = {"checkpoint_dir": tmp_path, "checkpoint_every": 1}
        with Embedded(threads=2) as engine:
            run(engine, PROGRAMS["pagerank"](3), **given)
        [path] = tmp_path.glob("*.checkpoint")
        return path

    def resume(self, path, program):
        with Embedded(threads=2) as engine:
            return run(engine, program, checkpoint_dir=path.parent, resume=True)

    def test_a_flipped_bit_is_found_wherever_it_is(self, saved):
        whole = saved.read_bytes()
        for place in np.linspace(0, len(whole) - 1, 40).astype(int):
            damaged = bytearray(whole)
            damaged[place] ^= 0x10
            saved.write_bytes(damaged)
            with pytest.raises(SavedStateError):
                self.resume(saved, PROGRAMS["pagerank"](3))

    def test_a_file_that_was_cut_short_is_found(self, saved):
        whole = saved.read_bytes()
        for length in (0, 5, 30, 200, len(whole) - 1):
            saved.write_bytes(whole[:length])
            with pytest.raises(SavedStateError):
                self.resume(saved, PROGRAMS["pagerank"](3))

    def test_another_program_may_not_go_on_from_it(self, saved):
        with pytest.raises(SavedStateError, match="another graph, program or partitioning"):
            self.resume(saved, PROGRAMS["pagerank"](3, damping=0.5))

    def test_the_same_program_may(self, saved):
        with Embedded(threads=2) as engine:
            expected, _ = run(engine, PROGRAMS["pagerank"](3))
        assert self.resume(saved, PROGRAMS["pagerank"](3))[0] == expected
