"""Processor quotas of hosts: a control group per host, of version 1 or 2.

    GROUP/talka-lab-PID-N/          made and locked by the keeper, removed when the lab has ended
                          host-0/   cpu.max, or cpu.cfs_quota_us; each rank joins before it starts

The lock (flock) of the folder ends with the keeper. So a folder without one was left behind by a keeper
that was killed: the driver removes it, or the next lab with quotas if the driver was killed too.
"""

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from talka.errors import LabError
from talka.machine import control_groups

_PREFIX = "talka-lab-"
_MEMBERS = "cgroup.procs"
_MAX_ATTEMPTS = 100
# A busy process runs until a timer tick finds its quota spent, every 4 ms on many kernels, and then
# stands still until it is paid for. Longest stops, measured with a tick of 4 ms: 0.45 cores 9 ms with
# a period of 10 ms, 13 ms with 20 ms, 58 ms with 100 ms (the default); 0.09 cores 38 ms with 20 ms,
# 44 ms with 12 ms, 92 ms with 100 ms. The share was within 2% of the quota up to 20 ms.
_MIN_PERIOD_S, _MAX_PERIOD_S, _QUOTA_S = 0.010, 0.020, 0.002
_MIN_QUOTA_S = 0.001  # of the kernel
# A quota is a limit, not a guarantee. With this weight hosts reach it while other processes are busy,
# too, and still less than the relay, which has the niceness -15. Among hosts, weights are their quotas.
_LAB_WEIGHT = 10
_REMOVE_TIMEOUT_S = 5.0  # for the kernel to end processes that were killed
_ADVICE = (
    "Run it as root on a machine (or in a container with `--privileged`) with the `cpu` controller; for "
    "control groups of version 2: `echo +cpu > /sys/fs/cgroup/cgroup.subtree_control`. Or set no quotas."
)


class LabGroup:
    """The control group of one lab, locked by this process."""

    def __init__(self, folder: Path, lock: int) -> None:
        self.folder, self._lock = folder, lock

    @classmethod
    def create(cls, *, root: Path = Path("/")) -> "LabGroup":
        """Create a group below that of this process, or above if the kernel does not allow it there.

        Groups that killed labs left there are removed. Raises LabError if there is no suitable place.
        """
        reasons = []
        for parent in parents(root):
            remove_stale_in(parent)
            try:
                return cls(*_locked_folder(parent))
            except OSError as error:
                reasons.append(f"{parent}: {error.strerror}")
        why = "; ".join(reasons) or "no control group of this process has the `cpu` controller"
        raise LabError(f"processor quotas cannot be set here ({why})", _ADVICE)

    def limit(self, host: int, cores: float) -> int:
        """Create the group of a host; return a descriptor for `join`."""
        group = self.folder / f"host-{host}"
        period_s, quota_s = period_and_quota(cores)
        period_us, quota_us = round(period_s * 1e6), round(quota_s * 1e6)
        try:
            group.mkdir()
            _set_weight(group, cores)
            if (group / "cpu.max").exists():
                (group / "cpu.max").write_text(f"{quota_us} {period_us}")
            else:
                (group / "cpu.cfs_period_us").write_text(str(period_us))
                (group / "cpu.cfs_quota_us").write_text(str(quota_us))
            members = os.open(group / _MEMBERS, os.O_WRONLY | os.O_CLOEXEC)
            _try_to_join(members)
        except OSError as error:
            problem = f"the quota of host {host} was refused ({group}: {error.strerror})"
            raise LabError(problem, _ADVICE) from None
        return members

    def unlock(self) -> None:
        """Close the lock in a process forked from the one that keeps it."""
        os.close(self._lock)

    def remove(self) -> None:
        """Remove the group, after the processes in it were killed."""
        _remove(self.folder)


def period_and_quota(cores: float) -> tuple[float, float]:
    """Return the period of a quota and the processor time per period, in seconds.

    >>> period_and_quota(0.5), period_and_quota(0.09), period_and_quota(0.01)
    ((0.01, 0.005), (0.02, 0.0018), (0.1, 0.001))
    """
    period_s = min(max(_QUOTA_S / cores, _MIN_PERIOD_S), _MAX_PERIOD_S)
    period_s = max(period_s, _MIN_QUOTA_S / cores)
    return period_s, period_s * cores


def join(members: int) -> None:
    """Move this process to a group, with all that it starts."""
    os.write(members, b"0")


def parents(root: Path = Path("/")) -> Iterator[Path]:
    """Yield the groups in which a lab may create its own: that of this process, then those above.

    In version 2 a group below another has the `cpu` controller only if `cgroup.subtree_control` of
    that one names it.
    """
    for group in control_groups(root, "cpu"):
        is_version_1 = (group / "cpu.shares").exists()
        with contextlib.suppress(OSError):
            if is_version_1 or "cpu" in (group / "cgroup.subtree_control").read_text().split():
                yield group


def remove_stale() -> None:
    """Remove the groups of labs whose keeper was killed."""
    for parent in parents():
        remove_stale_in(parent)


def remove_stale_in(parent: Path) -> None:
    """Remove the groups in one folder that no keeper has locked."""
    for folder in sorted(parent.glob(f"{_PREFIX}*")):
        with contextlib.suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(folder)
            finally:
                os.close(lock)


def _locked_folder(parent: Path) -> tuple[Path, int]:
    """Create a folder in `parent`; return its path and the descriptor that locks it."""
    for attempt in range(_MAX_ATTEMPTS):
        folder = parent / f"{_PREFIX}{os.getpid()}-{attempt}"
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _enable_below(folder)  # fails if another lab removed it before it was locked
                _set_weight(folder, _LAB_WEIGHT)
                return folder, lock
            except BlockingIOError:
                os.close(lock)
            except OSError:
                os.close(lock)
                _remove(folder)
                raise
    raise OSError(errno.EBUSY, "other labs remove the group")


def _enable_below(folder: Path) -> None:
    """Let groups below a new one have quotas, which takes a command in version 2."""
    folder.stat()
    control = folder / "cgroup.subtree_control"
    if control.exists():
        control.write_text("+cpu")


def _set_weight(group: Path, weight: float) -> None:
    """Set the weight of a group among its neighbours; 1 is that of an ordinary process."""
    weights = {"cpu.weight": (100, 1), "cpu.shares": (1024, 2)}  # of version 2 and of version 1
    for name, (ordinary, lowest) in weights.items():
        if (group / name).exists():
            (group / name).write_text(str(max(round(ordinary * weight), lowest)))


def _try_to_join(members: int) -> None:
    """Raise OSError if processes may not be moved to a group."""
    child = os.fork()
    if child == 0:
        try:
            join(members)
        except OSError as error:
            os._exit(error.errno or errno.EPERM)
        os._exit(0)
    number = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if number:
        raise OSError(number, os.strerror(number))


def _remove(folder: Path) -> None:
    """Remove a group and those below it; wait for killed processes to end."""
    deadline = time.monotonic() + _REMOVE_TIMEOUT_S
    while folder.exists() and time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError):
            try:
                for below in folder.glob("host-*"):
                    below.rmdir()
                folder.rmdir()
            except OSError as error:
                if error.errno != errno.EBUSY:
                    return
                time.sleep(0.01)
