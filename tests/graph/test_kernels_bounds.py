"""No kernel looks outside of its arrays."""

import os
import subprocess
import sys
from pathlib import Path

from tests.graph.checked_kernels import GRAPHS


def test_all_kernels_stay_inside_of_their_arrays(tmp_path):
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.graph.checked_kernels"],
        cwd=Path(__file__).parents[2],
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(done.stdout.splitlines()) == 2 * len(GRAPHS)
