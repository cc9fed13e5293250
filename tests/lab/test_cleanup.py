"""However `talka lab` ends, no process, no namespace, no link and no control group stays behind."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from talka.lab import Lab, LabConfig
from talka.lab.quotas import parents
from tests.marked import marked

pytestmark = pytest.mark.usefixtures("lab_works")
LATE = ["--latency", "5ms"]
# A rank with a child in another session: no process group includes both.
COMMAND = ["sh", "-c", "setsid sleep 1000 & echo ready; sleep 1000"]
TALKA = [sys.executable, "-m", "talka"]
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}


def links_outside():
    """Names of links in the machine's own namespace, and of named namespaces."""
    named = Path("/run/netns")
    return sorted(os.listdir("/sys/class/net")), sorted(named.iterdir()) if named.exists() else []


def groups_of(process):
    """The control groups of a running lab: at most one, named after the keeper."""
    keepers = psutil.Process(process.pid).children()
    return [
        group
        for parent in parents()
        for keeper in keepers
        for group in parent.glob(f"talka-lab-{keeper.pid}-*")
    ]


def wait_until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def unequal(request):
    """Options of a lab with a relay and, where the machine allows them, quotas."""
    try:
        request.getfixturevalue("quotas_work")
    except pytest.skip.Exception:
        return LATE
    return [*LATE, "--cores", "0.2"]


@contextlib.contextmanager
def started(tmp_path, options=()):
    """Start `talka lab` in a new session; afterwards check that nothing of it is left."""
    before = links_outside()
    with (
        marked() as mark,
        tempfile.TemporaryDirectory() as temporary,
        (tmp_path / "stderr").open("w+") as stderr,
    ):
        process = subprocess.Popen(
            [*TALKA, "lab", "--hosts", "3", *options, "--runs", tmp_path / "runs", "--", *COMMAND],
            env={**mark.environment, "TMPDIR": temporary},
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
        )
        with process.stdout:
            yield process, mark
        alive = mark.survivors()
        stderr.seek(0)
        assert alive == [], stderr.read()
        assert os.listdir(temporary) == []
    assert links_outside() == before


@pytest.mark.parametrize("signum", SIGNALS, ids=lambda signum: signum.name)
def test_a_signal_to_a_running_lab_leaves_nothing_behind(tmp_path, signum, unequal):
    with started(tmp_path, unequal) as (process, mark):
        assert process.stdout.readline() == b"ready\n"
        made = groups_of(process)
        assert len(made) == ("--cores" in unequal)
        namespaces = {os.stat(f"/proc/{one.pid}/ns/net").st_ino for one in mark.processes()}
        assert len(namespaces) >= 4, "ours, and one per host"
        process.send_signal(signum)
        assert process.wait(30) == CODES[signum]
        if signum != signal.SIGKILL:
            assert mark.processes() == [], "gone before the command ends, not some time later"
            assert [group for group in made if group.exists()] == []
    wait_until(lambda: not any(group.exists() for group in made))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("signum", SIGNALS, ids=lambda signum: signum.name)
def test_a_signal_at_any_moment_leaves_nothing_behind(tmp_path, signum, seed, unequal):
    after_s = random.Random(f"{signum}{seed}").uniform(0.05, 0.6)
    with started(tmp_path, unequal) as (process, _):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(after_s)
        made = groups_of(process)
        process.send_signal(signum)
        assert process.wait(30) != 0
    wait_until(lambda: not any(group.exists() for group in made))


def test_a_lab_whose_own_process_is_killed_says_so_and_leaves_nothing_behind(tmp_path, unequal):
    with started(tmp_path, unequal) as (process, _):
        assert process.stdout.readline() == b"ready\n"
        made = groups_of(process)
        [keeper] = psutil.Process(process.pid).children()
        keeper.kill()
        assert process.wait(30) == 1
        assert [group for group in made if group.exists()] == []
    assert "its first process ended" in (tmp_path / "stderr").read_text()


@pytest.mark.usefixtures("quotas_work")
def test_the_next_lab_removes_groups_of_one_that_was_killed_with_its_keeper(tmp_path, unequal):
    with started(tmp_path, unequal) as (process, _):
        assert process.stdout.readline() == b"ready\n"
        made = groups_of(process)
        [keeper] = psutil.Process(process.pid).children()
        keeper.suspend()  # so that it does not see the driver end
        process.kill()
        process.wait(30)
        keeper.kill()
    assert all(group.exists() for group in made)
    with Lab(LabConfig(num_hosts=1, rate_bits_per_s=1e9, cores=0.1)):
        assert [group for group in made if group.exists()] == []


def test_a_lab_whose_relay_is_killed_says_so(tmp_path):
    with started(tmp_path, LATE) as (process, _):
        assert process.stdout.readline() == b"ready\n"
        [keeper] = psutil.Process(process.pid).children()
        [first] = keeper.children()
        [relay] = [child for child in first.children() if child.name() not in ("sh", "sleep")]
        relay.kill()
        assert process.wait(30) == 1
    stderr = (tmp_path / "stderr").read_text()
    assert "the relay that delays packets ended (killed by SIGKILL" in stderr
    assert "Traceback" not in stderr
