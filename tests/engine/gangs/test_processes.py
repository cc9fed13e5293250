"""Processes of gangs: inside torchrun, forked from one process, many gangs in a row."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from talka.engine import Embedded
from talka.errors import GangError, TalkaError
from tests.waiting import wait_until

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_under_torchrun_the_existing_ranks_are_the_gang():
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
    command += ["--standalone", "--local-addr=127.0.0.1"]
    done = subprocess.run(
        [*command, "tests/engine/gangs/torchrun_script.py"],
        cwd=ROOT,
        env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": f"{ROOT}/src:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    refusal = "size is 3, but must be 2, the number of ranks that torchrun started."
    timeout = "no rank has set the key 'never' of the rendezvous within 0.02 s"
    roles = [["server", 0, "from 1", timeout, "127.0.0.1"], ["worker", 0, 5, True, [3.0, 3.0]]]
    expected = str([[3.0, 3.0], [30.0, 30.0], refusal, roles, roles])
    assert done.stderr.count(expected) == 2, done.stderr


def drawn(worker):
    import random

    import numpy as np

    return [random.random(), float(np.random.random()), os.getpid(), os.getpgid(0)]


def test_ranks_draw_different_numbers_and_lead_separate_process_groups():
    with Embedded() as engine:
        results = engine.gang(drawn, size=3)
    assert all(len(set(column)) == 3 for column in zip(*results, strict=True))
    assert all(process == group for _, _, process, group in results)


@pytest.mark.parametrize(
    "torch, timeout_s, says",
    [
        ("raise ImportError('no torch here')", None, "died (exit code 1)"),
        ("print('no torch here'); import time; time.sleep(99)", 3, "had not finished after 3 s"),
    ],
)
def test_a_failed_import_is_reported_with_the_log(tmp_path, monkeypatch, torch, timeout_s, says):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(torch)
    monkeypatch.syspath_prepend(tmp_path)
    with Embedded() as engine, pytest.raises(GangError, match="no torch here") as caught:
        engine.gang(drawn, size=2, timeout_s=timeout_s)
    assert says in str(caught.value)


def test_a_second_gang_is_forked_from_the_same_process_unless_its_surroundings_changed(monkeypatch):
    def leaders(worker):
        return psutil.Process().parents()[1].pid

    with Embedded() as engine:
        first, second = (engine.gang(leaders, size=1, backend=None) for _ in range(2))
        assert first == second
        monkeypatch.setenv("TALKA_TEST_SURROUNDINGS", "changed")
        value = engine.gang(
            lambda worker: os.environ["TALKA_TEST_SURROUNDINGS"], size=1, backend=None
        )
        assert value == ["changed"]
        assert engine.gang(leaders, size=1, backend=None) != first
        [server] = psutil.Process().children()
    assert not server.is_running()


def test_a_fork_server_that_was_killed_is_replaced():
    def servers(worker):
        return psutil.Process().parents()[1].pid

    with Embedded() as engine:
        [first] = engine.gang(servers, size=1, backend=None)
        psutil.Process(first).kill()
        wait_until(lambda: psutil.Process().children()[0].status() == psutil.STATUS_ZOMBIE)
        [second] = engine.gang(servers, size=1, backend=None)
    assert first != second


def test_close_stops_gangs_that_run_and_all_that_they_started(tmp_path):
    def main(worker):
        daemon = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        (tmp_path / f"{daemon.pid}").touch()
        threading.Event().wait()

    with Embedded() as engine:
        gang = engine.start_gang(main, size=1, backend=None)
        wait_until(lambda: os.listdir(tmp_path))
    [daemon] = os.listdir(tmp_path)
    assert not psutil.pid_exists(int(daemon))
    with pytest.raises(GangError, match="was ended by stop"):
        gang.wait()
    with pytest.raises(TalkaError, match="closed and cannot start a gang"):
        engine.start_gang(main, size=1)


def test_daemons_of_ranks_end_with_their_gang():
    def main(worker):
        return subprocess.Popen(["sleep", "1000"], start_new_session=True).pid

    with Embedded() as engine:
        [daemon] = engine.gang(main, size=1, backend=None)
        assert not psutil.pid_exists(daemon)


def test_a_rank_that_is_stopped_delays_neither_results_nor_reports_of_others(tmp_path):
    """Rank 0 does not read, so what is sent to it waits; rank 1 is killed, and rank 2 continues."""

    def main(worker):
        if worker.rank == 0:
            os.kill(os.getpid(), signal.SIGSTOP)
        if worker.rank == 1:
            worker.rendezvous.get("go")
            os._exit(3)
        for number in range(3):
            worker.rendezvous.set(f"{number}", bytes(1 << 20))
        worker.rendezvous.set("go", b"")
        wait_until(lambda: worker.losses.ranks)
        return sorted(worker.losses.ranks)

    with Embedded() as engine:
        gang = engine.start_gang(main, size=3, backend=None, on_failure="report")
        wait_until(lambda: gang._outcomes.running == (0,))
        gang.stop()
        stopped, lost, result = gang.wait()
    assert result == [1]
    assert lost.how == "died (exit code 3)"
    assert stopped.how == "was ended by stop()"


def resources():
    """Threads, descriptors and processes of this process, and its memory with that of its children."""
    process = psutil.Process()
    wait_until(lambda: len(process.children(recursive=True)) == 2)  # a keeper and a fork server
    family = [process, *process.children(recursive=True)]
    memory = sum(each.memory_info().rss for each in family)
    return [threading.active_count(), process.num_fds()], memory


def test_fifty_gangs_in_a_row_leave_nothing_behind():
    with Embedded() as engine:
        for number in range(54):
            if number == 4:
                counts, memory = resources()
            if number % 10 == 9:  # failures, too
                with pytest.raises(GangError):
                    engine.gang(lambda worker: 1 // 0, size=1, backend=None)
            else:
                engine.gang(lambda worker: worker.rendezvous.set("k", b"v"), size=2, backend=None)
        counts_after, memory_after = resources()
    assert counts_after == counts
    assert memory_after - memory < 8 << 20
