"""Gangs inside torchrun, the failure that is reported, and ranks forked from one process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from talka.engine import Embedded
from talka.engine.gangs.outcomes import Sign, culprit
from talka.errors import GangError

ROOT = Path(__file__).parents[2]


def test_a_death_is_reported_before_the_errors_that_it_caused():
    echo = Sign(0, 1.0, died=False, how="connection closed")
    death = Sign(2, 1.3, died=True, how="died")
    assert culprit([echo, death]) is death
    assert culprit([Sign(1, 2.0, died=False, how="later"), echo]) is echo


@pytest.mark.slow
def test_under_torchrun_the_existing_ranks_are_the_gang():
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
    command += ["--standalone", "--local-addr=127.0.0.1"]
    done = subprocess.run(
        [*command, "tests/engine/torchrun_script.py"],
        cwd=ROOT,
        env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    refusal = "size is 3, but must be 2, the number of ranks that torchrun started."
    expected = str([[3.0, 3.0], [30.0, 30.0], refusal])
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
