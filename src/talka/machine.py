"""Cores and memory that this process may use: of the machine, or of what confines it.

A process can be confined by `taskset` and cpusets, and by control groups (version 1 or 2): its own
group and all groups above it. These limits are read once per process: jobs ask for them in every
superstep. The root of the file system is a parameter for tests.
"""

import functools
import math
import os
import re
import resource
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_ROOT = Path("/")
_GROUPS = "sys/fs/cgroup"


def num_cores(*, root: Path = _ROOT) -> int:
    """Number of cores that this process may use, at least 1; a quota of 1.5 cores counts as 2."""
    quotas = [math.ceil(quota) for quota in _core_quotas(root)]
    return max(1, min([len(os.sched_getaffinity(0)), *quotas]))


def process_age_s(*, root: Path = _ROOT) -> float:
    """Seconds since this process was started; without /proc, the processor time that it has used."""
    fields = _text(root / "proc/self/stat").rpartition(")")[2].split()
    if not fields:
        return time.process_time()
    started_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started_s


def memory_bytes(*, root: Path = _ROOT) -> int:
    """Bytes of memory that this process may use, whether or not others use them now."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([machine, *(limit for _, limit in _memory_limits(root))])


def available_memory_bytes(*, root: Path = _ROOT) -> int:
    """Bytes of memory that can be taken now without pushing anything out.

    File pages that a group has not used lately do not count as used: the kernel drops them first.
    """
    available = [memory_bytes(root=root)]
    if found := re.search(r"MemAvailable:\s*(\d+) kB", _text(root / "proc/meminfo")):
        available.append(int(found[1]) * 1024)
    for group, limit in _memory_limits(root):
        available.append(limit - _used_bytes(group))
    return max(0, min(available))


@functools.cache
def _core_quotas(root: Path) -> tuple[float, ...]:
    quotas = []
    for group in _groups(root, "cpu"):
        quota, _, period = _text(group / "cpu.max").partition(" ")  # version 2: "max 100000"
        if not quota:
            quota = _text(group / "cpu.cfs_quota_us")  # version 1: -1 if there is no quota
            period = _text(group / "cpu.cfs_period_us")
        if quota.isdecimal() and period.isdecimal() and int(period):
            quotas.append(int(quota) / int(period))
    return tuple(quotas)


@functools.cache
def _memory_limits(root: Path) -> tuple[tuple[Path, int], ...]:
    """Return groups that have a limit, with their bytes."""
    limits = []
    for group in _groups(root, "memory"):
        limit = _text(group / "memory.max") or _text(group / "memory.limit_in_bytes")
        if limit.isdecimal():  # version 2 says "max" if there is none; version 1 a huge number
            limits.append((group, int(limit)))
    return tuple(limits)


def _used_bytes(group: Path) -> int:
    used = _text(group / "memory.current") or _text(group / "memory.usage_in_bytes")
    idle = re.search(
        r"^(?:total_)?inactive_file (\d+)$", _text(group / "memory.stat"), re.MULTILINE
    )
    return (int(used) if used.isdecimal() else 0) - (int(idle[1]) if idle else 0)


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """The folders of the control groups that this process is in, up to the topmost one.

    In a container the path can be that of the host, of which only the last part is mounted. It does
    not exist then, and the topmost folder is the process's own group.
    """
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = f"{line}::".split(":")[:3]
        if controllers and controller not in controllers.split(","):
            continue
        mounts = (controllers, controller) if controllers else ("unified", "")
        inside = PurePosixPath(path.lstrip("/"))
        for mount in mounts:
            top = root / _GROUPS / mount
            if top.is_dir():
                yield from (top / above for above in (inside, *inside.parents))
                break


def _text(path: Path) -> str:
    """Content of a file of the kernel; empty if there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def peak_memory_bytes() -> int:
    """The most that this process, or the largest of those that it started, ever held.

    For this process not `ru_maxrss`, which also knows what its parent held when it started it.
    """
    status = Path("/proc/self/status").read_text()
    own = int(status.split("VmHWM:")[1].split()[0])
    return 1024 * max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
