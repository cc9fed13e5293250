"""However `talka lab` ends, no process, no namespace and no link stays behind."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from tests.marked import marked

pytestmark = pytest.mark.usefixtures("lab_works")
# A rank with a child in another session: no process group includes both.
COMMAND = ["sh", "-c", "setsid sleep 1000 & echo ready; sleep 1000"]
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}


def links_outside():
    """Names of links in the machine's own namespace, and of named namespaces."""
    named = Path("/run/netns")
    return sorted(os.listdir("/sys/class/net")), sorted(named.iterdir()) if named.exists() else []


@contextlib.contextmanager
def started(tmp_path):
    """Start `talka lab` in a new session; afterwards check that nothing of it is left."""
    before = links_outside()
    with (
        marked() as mark,
        tempfile.TemporaryDirectory() as temporary,
        (tmp_path / "stderr").open("w+") as stderr,
    ):
        process = subprocess.Popen(
            [sys.executable, "-m", "talka", "lab", "--hosts", "3", "--", *COMMAND],
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
def test_a_signal_to_a_running_lab_leaves_nothing_behind(tmp_path, signum):
    with started(tmp_path) as (process, mark):
        assert process.stdout.readline() == b"ready\n"
        namespaces = {os.stat(f"/proc/{one.pid}/ns/net").st_ino for one in mark.processes()}
        assert len(namespaces) >= 4, "ours, and one per host"
        process.send_signal(signum)
        assert process.wait(30) == CODES[signum]
        if signum != signal.SIGKILL:
            assert mark.processes() == [], "gone before the command ends, not some time later"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("signum", SIGNALS, ids=lambda signum: signum.name)
def test_a_signal_at_any_moment_leaves_nothing_behind(tmp_path, signum, seed):
    after_s = random.Random(f"{signum}{seed}").uniform(0.05, 0.6)
    with started(tmp_path) as (process, _):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(after_s)
        process.send_signal(signum)
        assert process.wait(30) != 0


def test_a_lab_whose_own_process_is_killed_says_so(tmp_path):
    with started(tmp_path) as (process, _):
        assert process.stdout.readline() == b"ready\n"
        [keeper] = psutil.Process(process.pid).children()
        keeper.kill()
        assert process.wait(30) == 1
    assert "its first process ended" in (tmp_path / "stderr").read_text()
