"""Kernels again, compiled with checks of every index: numba takes that from the environment."""

import os
import subprocess
import sys
from pathlib import Path


def lines_said_with_bounds_checked(module, tmp_path, *arguments):
    """By a module of the tests, run as a program; its own cache, because code differs.

    Not optimised: compiling takes most of the time, and indices are the same.
    """
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "0", "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=Path(__file__).parents[1],
        env={**os.environ, **checked},
        capture_output=True,
        text=True,
        timeout=850,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()
