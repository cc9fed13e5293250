"""What only the embedded engine promises."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import psutil
import pyarrow as pa
import pytest

from talka.engine import Embedded
from talka.errors import InvalidValueError, ReleasedError, TaskError
from talka.events import TasksRan, WorkerLost
from tests.engine.engines import Recorder


@pytest.fixture
def engine(recorder):
    with Embedded(threads=2, processes=2, events=recorder) as engine:
        yield engine


def one(refs):
    [ref] = refs
    return ref


def test_native_tasks_run_in_threads_and_python_tasks_in_processes(engine):
    assert engine.fetch(one(engine.submit(os.getpid))) == os.getpid()
    assert engine.fetch(one(engine.submit(os.getpid, python=True))) != os.getpid()


def test_a_worker_killed_from_outside_in_the_middle_of_a_task(engine, recorder, tmp_path):
    pipe = tmp_path / "pid"
    os.mkfifo(pipe)

    def work(x):
        import os as os_there
        import pathlib

        if not (tmp_path / "second").exists():
            (tmp_path / "second").touch()
            pathlib.Path(pipe).write_text(str(os_there.getpid()))
            threading.Event().wait()
        return float(x.sum())

    given = one(engine.submit(lambda: np.ones(100_000), name="given"))
    ref = one(engine.submit(work, given, name="work", python=True))
    os.kill(int(pipe.read_text()), signal.SIGKILL)
    assert engine.fetch(ref) == 100_000
    assert recorder.again() == ["work"]
    [lost] = [event for event in recorder.events if isinstance(event, WorkerLost)]
    assert "SIGKILL" in lost.reason


def test_what_a_dead_worker_started_dies_with_it(engine, tmp_path):
    def start_child_and_die():
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
        (tmp_path / str(child.pid)).touch()
        os._exit(1)

    with pytest.raises(Exception, match="died"):
        engine.fetch(engine.submit(start_child_and_die, python=True))
    children = [int(path.name) for path in tmp_path.iterdir()]
    assert len(children) == 3
    _, alive = psutil.wait_procs(
        [psutil.Process(pid) for pid in children if psutil.pid_exists(pid)], timeout=5
    )
    assert alive == []


def test_a_worker_reads_a_table_where_it_lies(engine):
    """The worker maps the table: it allocates nothing of that size itself."""
    table = one(engine.submit(lambda: pa.table({"x": np.zeros(2_000_000)})))

    def allocated(table):
        import pyarrow as there

        return there.total_allocated_bytes(), table.num_rows

    assert engine.fetch(one(engine.submit(allocated, table, python=True))) == (0, 2_000_000)


def test_more_descriptors_than_one_message_takes(engine):
    refs = [one(engine.submit(lambda i=i: np.full(10, i))) for i in range(600)]
    total = one(engine.submit(lambda *arrays: sum(int(a[0]) for a in arrays), *refs, python=True))
    assert engine.fetch(total) == sum(range(600))


def test_a_function_is_what_it_was_when_it_was_submitted(engine):
    number = 1
    first = engine.submit(lambda: number, python=True)
    number = 2
    assert engine.fetch(first) == [1]


def test_many_different_functions_do_not_pile_up_in_a_worker(engine):
    refs = [one(engine.submit(lambda i=i: i, python=True)) for i in range(2500)]
    assert engine.fetch(refs) == list(range(2500))


def test_task_events_are_batched_and_complete(engine, recorder):
    refs = [one(engine.submit(lambda: None, name="tiny")) for _ in range(5000)]
    engine.wait(refs)
    engine.close()
    stretches = [event for event in recorder.events if isinstance(event, TasksRan)]
    assert sum(event.count for event in stretches) == 5000
    assert len(stretches) < 500
    assert {event.worker for event in stretches} <= {"thread-0", "thread-1"}
    for event in stretches:
        assert 0 <= event.busy_s <= event.end_s - event.start_s + 1e-6


def test_whoever_waits_in_another_thread_is_woken_by_close(engine):
    outcome = []
    ref = one(engine.submit(threading.Event().wait, 3))
    started = threading.Event()

    def wait():
        started.set()
        try:
            engine.wait([ref])
        except ReleasedError:
            outcome.append("woken")

    thread = threading.Thread(target=wait)
    thread.start()
    started.wait()
    engine.close()
    thread.join(5)
    assert outcome == ["woken"]


def test_a_broken_interpreter_is_an_error_and_no_hang(engine, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(TaskError, match="No such file"):
        engine.fetch(engine.submit(lambda: 1, python=True))


@pytest.mark.parametrize("option", ["threads", "processes", "memory_bytes"])
def test_options_out_of_range_are_refused(option):
    with pytest.raises(InvalidValueError, match=f"{option} is 0"):
        Embedded(**{option: 0})


def test_a_spill_folder_that_is_none_is_refused(tmp_path):
    with pytest.raises(InvalidValueError, match="a folder that you may write to"):
        Embedded(spill_dir=tmp_path / "missing")


def test_ranks_write_logs_and_events_into_the_run_directory(tmp_path):
    from talka.events import Measured, read_run

    def main(worker):
        print("hello from", worker.rank)
        worker.events.emit(Measured("step/exchange", 10.0, 0.5))
        return str(worker.log_path)

    with Embedded(events=Recorder(tmp_path / "events.jsonl")) as engine:
        paths = engine.gang(main, size=2)
    assert paths == [str(tmp_path / "logs" / f"rank-{rank}.log") for rank in range(2)]
    assert (tmp_path / "logs" / "rank-1.log").read_text() == "hello from 1\n"
    assert sorted(event.source for event in read_run(tmp_path).events) == ["rank-0", "rank-1"]


def test_a_gang_listens_on_loopback_only():
    def main(worker):
        import psutil as there
        import torch.distributed as dist

        dist.barrier()
        connections = there.Process().net_connections("inet")
        return sorted({c.laddr.ip for c in connections if c.status == there.CONN_LISTEN})

    with Embedded() as engine:
        for addresses in engine.gang(main, size=2):
            assert all(ip.removeprefix("::ffff:").startswith("127.") for ip in addresses), addresses
