"""Every benchmark runs, prints tables and writes JSON; what it measures is for quiet machines."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "compressors",
        "embeddings",
        "engine",
        "explain",
        "explain_graphs",
        "follow",
        "graph",
        "graph_build",
        "parity",
    ],
)
def test_the_smoke_preset_runs(name, tmp_path):
    out = tmp_path / "rows.json"
    command = [sys.executable, "-W", "ignore", "-m", f"benchmarks.{name}", "--json", str(out)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr
    written = json.loads(out.read_text())
    assert written["environment"]["cores"] >= 1
    assert all(rows for rows in written["tables"].values())
    assert all(f"**{title}**" in done.stdout for title in written["tables"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["collectives", "explain_exchanges", "graph_machines", "rhythm_predictions", "slow_network"],
)
def test_benchmarks_with_links_run_where_there_is_a_lab(name, lab_works, tmp_path):
    test_the_smoke_preset_runs(name, tmp_path)
