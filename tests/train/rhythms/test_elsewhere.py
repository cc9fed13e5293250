"""Rhythms where others start the workers: torchrun without a process group, Python alone, a lab."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from talka.lab import Lab, LabConfig, LabRunOptions

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
SCRIPT = str(Path(__file__).parent / "torchrun_script.py")


def environment(folder):
    return {**os.environ, "TALKA_TEST_OUT": str(folder), "PYTHONPATH": str(ROOT)}


def results(folder):
    """Return the workers, rounds and sums of parameters that the ranks have written."""
    return {path.name: path.read_text().split() for path in folder.iterdir()}


def check(folder, size):
    found = results(folder)
    assert sorted(found) == [f"{rank}-of-{size}" for rank in range(size)]
    assert {tuple(one[:2]) for one in found.values()} == {(str(size), "3")}
    assert len({one[2] for one in found.values()}) == 1


def test_torchrun_and_plain_python(tmp_path):
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    for size, words in ((2, launcher), (1, [])):
        folder = tmp_path / str(size)
        folder.mkdir()
        done = subprocess.run(
            [sys.executable, *words, SCRIPT],
            env=environment(folder),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "talka: local-sgd:4 with onebit+ef: 10 steps in 3 rounds" in done.stderr
        check(folder, size)


def test_hosts_of_a_lab(lab_works, tmp_path):
    with Lab(LabConfig(num_hosts=2, rate_bits_per_s=1e8)) as lab:
        options = LabRunOptions(environment=environment(tmp_path), timeout_s=120)
        lab.run([sys.executable, SCRIPT], options)
    check(tmp_path, 2)
