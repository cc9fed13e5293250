"""Properties of the embedded engine only."""

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import psutil
import pyarrow as pa
import pytest

from talka.engine import Embedded, Engine
from talka.engine.events import TasksRan, WorkerLost
from talka.engine.local import wire
from talka.errors import InvalidValueError, ReleasedError, TaskError
from talka.events import Stream
from tests.engine.engines import Recorder


@pytest.fixture
def engine(recorder):
    with Embedded(threads=2, processes=2, events=recorder) as engine:
        yield engine


def test_native_tasks_run_in_threads_and_python_tasks_in_processes(engine):
    assert engine.fetch(engine.submit(os.getpid)) == os.getpid()
    assert engine.fetch(engine.submit(os.getpid, python=True)) != os.getpid()


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

    source = engine.submit(lambda: np.ones(100_000), name="source")
    ref = engine.submit(work, source, name="work", python=True)
    os.kill(int(pipe.read_text()), signal.SIGKILL)
    assert engine.fetch(ref) == 100_000
    assert recorder.again() == ["work"]
    [lost] = [event for event in recorder.events if isinstance(event, WorkerLost)]
    assert "SIGKILL" in lost.reason


def test_processes_of_a_dead_worker_are_killed(engine, tmp_path):
    def start_child_and_die():
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
        (tmp_path / str(child.pid)).touch()
        os._exit(1)

    with pytest.raises(Exception, match="died"):
        engine.fetch(engine.submit(start_child_and_die, python=True))
    children = [int(path.name) for path in tmp_path.iterdir()]
    assert len(children) == 3
    _, alive = psutil.wait_procs(
        [psutil.Process(pid) for pid in children if psutil.pid_exists(pid)], timeout=60
    )
    assert alive == []


def test_a_worker_reads_a_table_without_a_copy(engine):
    """The worker maps the table and allocates no memory of that size."""
    table = engine.submit(lambda: pa.table({"x": np.zeros(2_000_000)}))

    def allocated(table):
        import pyarrow as there

        return there.total_allocated_bytes(), table.num_rows

    assert engine.fetch(engine.submit(allocated, table, python=True)) == (0, 2_000_000)


def test_more_descriptors_than_one_message_takes(engine):
    refs = [engine.submit(lambda i=i: np.full(10, i)) for i in range(600)]
    total = engine.submit(lambda *arrays: sum(int(a[0]) for a in arrays), *refs, python=True)
    assert engine.fetch(total) == sum(range(600))


def test_a_function_keeps_its_state_from_submission(engine):
    number = 1
    first = engine.submit(lambda: number, python=True)
    number = 2
    assert engine.fetch(first) == 1


def test_many_different_functions_do_not_accumulate_in_a_worker(engine):
    refs = [engine.submit(lambda i=i: i, python=True) for i in range(2500)]
    assert engine.fetch(refs) == list(range(2500))


def test_task_events_are_batched_and_complete(engine, recorder):
    refs = [engine.submit(lambda: None, name="tiny") for _ in range(5000)]
    engine.wait(refs)
    engine.close()
    stretches = [event for event in recorder.events if isinstance(event, TasksRan)]
    assert sum(event.count for event in stretches) == 5000
    assert len(stretches) < 500
    assert {event.worker for event in stretches} <= {"thread-0", "thread-1"}
    for event in stretches:
        assert 0 <= event.busy_s <= event.end_s - event.start_s + 1e-6


def test_a_task_that_ends_while_the_engine_closes_is_in_the_events(recorder, monkeypatch):
    """Its thread is stopped before it was idle, which is when it emits its events otherwise."""
    engine = Embedded(threads=1, processes=1, events=recorder)
    started, closing = threading.Event(), threading.Event()
    stop = engine._native.stop

    def end_when_closing():
        started.set()
        closing.wait(60)

    def stop_then_let_it_end():
        stop()
        closing.set()

    monkeypatch.setattr(engine._native, "stop", stop_then_let_it_end)
    engine.submit(end_when_closing, name="last")
    assert started.wait(60)
    engine.close()
    assert [event.count for event in recorder.events if isinstance(event, TasksRan)] == [1]


def test_close_wakes_threads_that_wait(engine):
    outcome = []
    ref = engine.submit(threading.Event().wait, 3)
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


def test_a_broken_interpreter_is_an_error_without_a_hang(engine, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(TaskError, match="No such file"):
        engine.fetch(engine.submit(lambda: 1, python=True))


@pytest.mark.parametrize("option", ["threads", "processes", "memory_bytes"])
def test_options_out_of_range_are_refused(option):
    with pytest.raises(InvalidValueError, match=f"{option} is 0"):
        Embedded(**{option: 0})


def test_a_spill_folder_that_does_not_exist_is_refused(tmp_path):
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


def test_a_gang_listens_on_loopback_only_and_has_no_store_on_the_network():
    def main(worker):
        import psutil as there
        import torch.distributed as dist

        dist.barrier()
        connections = there.Process().net_connections("inet")
        store = dist.distributed_c10d._get_default_store()
        while isinstance(store, dist.PrefixStore):
            store = store.underlying_store
        listening = {c.laddr.ip for c in connections if c.status == there.CONN_LISTEN}
        return [type(store).__name__, *sorted(listening)]

    with Embedded() as engine:
        for store, *addresses in engine.gang(main, size=2):
            assert store == "FileStore"
            assert all(ip.removeprefix("::ffff:").startswith("127.") for ip in addresses), addresses


class Stop(BaseException):
    """An exception that `except Exception` does not catch."""


@pytest.mark.parametrize("python", [False, True], ids=["native", "python"])
@pytest.mark.parametrize(
    "error", [asyncio.CancelledError, KeyboardInterrupt, Stop], ids=lambda e: e.__name__
)
def test_a_task_that_raises_a_base_exception_fails_and_its_thread_survives(python, error):
    def raise_it():
        raise error("out of the ordinary")

    with Embedded(threads=1, processes=1) as engine:
        with pytest.raises(TaskError, match=f"{error.__name__}: out of the ordinary"):
            engine.fetch(engine.submit(raise_it, python=python))
        assert engine.fetch(engine.submit(lambda: 1, python=python)) == 1


@pytest.mark.parametrize("python", [False, True], ids=["native", "python"])
def test_a_task_that_cannot_be_described_fails_and_its_thread_survives(python):
    class Shy:
        def __repr__(self):
            raise RuntimeError("no comment")

    def fail(shy):
        raise ValueError("half a surrogate pair: \ud800")

    with Embedded(threads=1, processes=1) as engine:
        with pytest.raises(TaskError, match="half a surrogate pair: ?"):
            engine.fetch(engine.submit(fail, Shy(), python=python))
        assert engine.fetch(engine.submit(lambda: 1, python=python)) == 1


class Broken(Stream):
    def emit(self, event):
        raise OSError("no events today")


@pytest.mark.parametrize("python", [False, True], ids=["native", "python"])
def test_events_that_cannot_be_emitted_do_not_stop_tasks(python, tmp_path, caplog):
    def dies_once():
        if not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os._exit(1)

    with Embedded(threads=1, processes=1, events=Broken()) as engine:
        for number in range(3):
            assert engine.fetch(engine.submit(lambda n: n, number, python=python)) == number
        if python:
            assert engine.fetch(engine.submit(dies_once, python=True)) is None
    assert "no events today" in caplog.text


def test_a_reply_that_cannot_be_read_is_not_taken_for_the_next_one(monkeypatch):
    real = wire.receive

    def fails_halfway(channel):
        channel.recv(1)
        raise OSError("bad luck")

    with Embedded(processes=1) as engine:
        assert engine.fetch(engine.submit(lambda: "first", python=True)) == "first"
        monkeypatch.setattr(wire, "receive", fails_halfway)
        with pytest.raises(TaskError, match="bad luck"):
            engine.fetch(engine.submit(lambda: "second", python=True))
        monkeypatch.setattr(wire, "receive", real)
        assert engine.fetch(engine.submit(lambda: "third", python=True)) == "third"


def test_a_task_that_cannot_be_launched_is_an_error_without_a_hang(engine, monkeypatch):
    def refuse(task):
        raise RuntimeError("no room")

    monkeypatch.setattr(engine, "_launch", refuse)
    ref = engine.submit(lambda: 1)
    with pytest.raises(TaskError, match="no room"):
        engine.fetch(ref)


@pytest.mark.parametrize("python", [False, True], ids=["native", "python"])
def test_a_process_that_a_task_forks_never_sends_a_reply(python, tmp_path):
    def fork_once(number):
        if number == 1:
            os.fork()
            (tmp_path / str(os.getpid())).touch()
        return number

    with Embedded(threads=1, processes=1) as engine:
        refs = [engine.submit(fork_once, number, python=python) for number in range(6)]
        assert engine.fetch(refs) == list(range(6))
    forked = [int(path.name) for path in tmp_path.iterdir()]
    forked = [
        psutil.Process(pid) for pid in forked if pid != os.getpid() and psutil.pid_exists(pid)
    ]
    assert psutil.wait_procs(forked, timeout=60)[1] == []


@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_native_task_that_waits_for_another_is_an_error_without_a_hang(num_threads):
    with Embedded(threads=num_threads) as engine:

        def nested():
            return engine.fetch(engine.submit(lambda: 1))

        with pytest.raises(TaskError, match="a task may not wait for outputs"):
            engine.fetch(engine.submit(nested))
        with Embedded(threads=1) as other:
            ref = engine.submit(lambda: other.fetch(other.submit(lambda: 2)))
            assert engine.fetch(ref) == 2


def test_public_methods_are_documented_in_help():
    for name in ("submit", "wait", "fetch", "release", "replace", "gang", "start_gang", "close"):
        assert inspect.getdoc(getattr(Embedded, name)) == inspect.getdoc(getattr(Engine, name))
        assert inspect.getdoc(getattr(Embedded, name))
