"""Graph programs on two hosts with a link between them: Ray on both, then on one of them only."""

import json
import secrets
import sys
from pathlib import Path

import numpy as np
import pytest

from talka.engine import Embedded
from talka.graph import RunOptions, run_program
from talka.lab import Lab, LabConfig, LabRunOptions
from tests.graph.lab_hosts_script import NUM_PARTITIONS, RUNS, graph

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("lab_works")]
ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-W", "ignore", "-m", "tests.graph.lab_hosts_script"]


def test_two_hosts_find_the_same_bits_also_when_one_is_lost(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    how = LabRunOptions(
        timeout_s=250,
        logs=tmp_path / "logs",
        environment={"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)},
    )
    with Lab(LabConfig(num_hosts=2, rate_bits_per_s=1e9)) as lab:
        result = lab.run([*COMMAND, str(tmp_path)], how)
    whole_graph = graph()
    with Embedded(threads=2) as engine:
        options = RunOptions(engine=engine, num_partitions=NUM_PARTITIONS)
        for name, program, _ in RUNS:
            expected = run_program(whole_graph, program(), options).values
            np.testing.assert_array_equal(np.load(tmp_path / f"{name}.npy"), expected)
    again = json.loads((tmp_path / "again.json").read_text())
    assert {name for name, num_again in again.items() if num_again} == {"lost"}
    assert min(host.sent_bytes for host in result.hosts) > whole_graph.num_vertices * 8, (
        "both took part"
    )
