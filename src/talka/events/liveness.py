"""Whether a process still writes to a run directory.

Every writer of events holds a lock on its file, which the kernel takes away when the process ends in
whatever way. `config.json` says on which machine, and since which start of it, that lock means
something: on another machine it may be invisible.
"""

import fcntl
import os
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

_SILENT_S: Final = 3600.0
"""Seconds without an event after which a run of another machine counts as ended."""


def boot_id() -> str:
    """A name for the time since this machine was started."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def has_living_writer(event_files: Sequence[Path], config: dict[str, Any]) -> bool:
    if any(map(_is_locked, event_files)):
        return True
    is_same_host = config.get("host") == socket.gethostname()
    if "boot_id" not in config:  # no lock: a former version, or a file system that has none
        return is_same_host and _is_process(config.get("pid"))
    if is_same_host or config["boot_id"] == boot_id():
        return False
    return any(time.time() - path.stat().st_mtime < _SILENT_S for path in event_files)


def _is_locked(path: Path) -> bool:
    """Whether somebody else has the file locked; readers do not disturb each other."""
    file = os.open(path, os.O_RDONLY)
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
        return True  # somebody else's
    return True
