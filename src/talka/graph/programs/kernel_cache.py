"""Cache of compiled programs on disk: its folder, and which programs are kept.

Each program has a file with its text, named by its hash, and beside it numba's files with machine
code. A program counts as used when a process loads it; the least recently used ones are removed.
Other processes may load, write and remove programs at the same time.
"""

import contextlib
import os
import time
from collections import defaultdict
from pathlib import Path
from typing import Final

import numba

from talka.files import cache_folder

MAX_PROGRAMS: Final = 500
"""Number of programs to keep; each takes about 200 kB with its machine code."""
_MIN_AGE_S: Final = 3600.0
"""Seconds after its last use before a program may be removed: until then it may be loading."""


def folder() -> Path:
    """Return the folder for generated code."""
    return cache_folder("kernels")


def was_compiled(algorithm: str) -> bool:
    """Return whether the programs of an algorithm were compiled here before, so they only load."""
    return _marker(algorithm).exists()


def remember_compiled(algorithm: str) -> None:
    """Record for later predictions that the programs of an algorithm are compiled."""
    with contextlib.suppress(OSError):  # a full disk makes predictions worse, nothing else
        _marker(algorithm).touch()


def _marker(algorithm: str) -> Path:
    return folder() / f"compiled_{algorithm}_with_numba_{numba.__version__}"


def mark_used(path: Path) -> None:
    """Set a program's time of access to now. Its time of modification is part of numba's cache key.

    A missing file is ignored: the caller writes it.
    """
    with contextlib.suppress(OSError):
        os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))


def remove_unused(folder: Path, *, max_programs: int = MAX_PROGRAMS) -> None:
    """Remove all but the most recently used programs; keep all that were used within an hour."""
    files: defaultdict[str, list[Path]] = defaultdict(list)
    for path in (*folder.glob("edge_program_*.py"), *folder.glob("__pycache__/edge_program_*")):
        files[path.name.partition(".")[0]].append(path)
    used_s = {program: max(map(_used_s, files[program])) for program in files}
    last_first = sorted(used_s, key=lambda program: -used_s[program])
    for program in last_first[max_programs:]:
        if used_s[program] < time.time() - _MIN_AGE_S:
            for path in files[program]:
                path.unlink(missing_ok=True)


def _used_s(path: Path) -> float:
    """Return the time at which a file was written or marked; 0 if it no longer exists."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return 0.0
    return max(status.st_atime, status.st_mtime)
