"""Folders for files that make later runs faster and can be removed at any time."""

import os
import stat
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tempfile


@cache
def cache_folder(name: str) -> Path:
    """Return the folder `name` in the user's cache of talka, unless others can write to it.

    If it cannot be used, a temporary folder takes its place for the life of the process.
    """
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(home) / "talka" / name
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = folder.stat()
        foreign = status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if not foreign and os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass  # no home directory, or it is read-only
    return Path(_temporary(name).name)


@cache
def _temporary(name: str) -> "tempfile.TemporaryDirectory[str]":
    import tempfile  # rarely needed, and slow to load

    return tempfile.TemporaryDirectory(prefix=f"talka-{name}-")
