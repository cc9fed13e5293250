"""Ctrl+C and SIGTERM, at any moment, leave no process, no shared memory and no file behind."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.engine.kill_campaign import kill_one
from tests.marked import marked

ROOT = Path(__file__).parents[2]


def interrupt(kind, signum, after_s, tmp_path):
    """Start the job in a new process group and send the signal to the driver only.

    A shell would send Ctrl+C to the whole group; here the driver must do all the cleaning.
    """
    shared_before = set(os.listdir("/dev/shm"))
    runs = tmp_path / "runs"
    runs.mkdir()
    # A short name, as Ray puts sockets below it, whose paths have a maximum length.
    with (
        marked() as mark,
        tempfile.TemporaryDirectory(prefix="tk") as temporary,
        (tmp_path / "output").open("w+") as output,
    ):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.engine.interrupted_script", kind, str(runs)],
            cwd=ROOT,
            env={**mark.environment, "TMPDIR": temporary},
            stdout=subprocess.PIPE,
            stderr=output,
            start_new_session=True,
        )
        with process.stdout:
            assert process.stdout.readline() == b"started\n"
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(after_s)
        assert process.poll() is None, "the job ended before it was interrupted"
        process.send_signal(signum)
        process.wait(30)
        alive = mark.survivors()
        output.seek(0)
        printed = output.read()
        left = os.listdir(temporary)
    assert alive == [], printed
    assert left == [], printed
    assert {name for name in os.listdir("/dev/shm") if "talka" in name} <= shared_before, printed
    [run] = runs.iterdir()  # no spill file beside the run directory
    assert {path.name for path in run.iterdir()} <= {"config.json", "events.jsonl", "logs"} | {
        f"events.rank-{rank}.jsonl" for rank in range(2)
    }
    return process.returncode


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda s: s.name
)
def test_the_embedded_engine_leaves_nothing_behind(tmp_path, signum, seed):
    after_s = random.Random(f"{signum}{seed}").uniform(0, 4)
    assert interrupt("embedded", signum, after_s, tmp_path) != 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda s: s.name
)
@pytest.mark.parametrize("seed", range(2))
def test_a_local_ray_cluster_leaves_nothing_behind(tmp_path, signum, seed):
    after_s = random.Random(f"ray{signum}{seed}").uniform(0, 14)
    assert interrupt("ray", signum, after_s, tmp_path) != 0


@pytest.mark.parametrize("kind", ["tasks", pytest.param("gang", marks=pytest.mark.slow)])
def test_a_killed_driver_leaves_neither_busy_workers_nor_their_processes(kind):
    assert kill_one(kind, moment_s=0) is not None
