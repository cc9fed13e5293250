"""Check whether a process is still writing to a run directory.

Each writer of events holds a lock on its file, which the kernel releases when the process ends for
any reason. On another machine the lock may be invisible, so `config.json` records the machine and
its boot for which the lock is meaningful.
"""

import fcntl
import os
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

_SILENT_S: Final = 3600.0
"""Seconds without an event after which a run on another machine counts as ended."""


def boot_id() -> str:
    """Return an id that changes each time this machine boots; empty if there is none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def has_living_writer(event_files: Sequence[Path], config: dict[str, Any]) -> bool:
    """Return whether a live process writes to one of these event files of a run."""
    if any(map(_is_locked, event_files)):
        return True
    is_same_host = config.get("host") == socket.gethostname()
    if (
        "boot_id" not in config
    ):  # no lock: written by an earlier version, or on a file system without locks
        return is_same_host and _is_process(config.get("pid"))
    if is_same_host or config["boot_id"] == boot_id():
        return False
    return any(time.time() - path.stat().st_mtime < _SILENT_S for path in event_files)


def open_to_read(path: Path) -> int:
    """Open a file that may be anything: a pipe in its place does not wait for a writer."""
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK)


def _is_locked(path: Path) -> bool:
    """Return whether a writer has locked the file. Readers share their lock."""
    file = open_to_read(path)
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file system without locks
    finally:
        os.close(file)
    return False


def _is_process(pid: object) -> bool:
    if not isinstance(pid, int) or not 0 < pid < 1 << 31:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # a process of another user
    return True
