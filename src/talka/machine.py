"""Cores and memory that this process may use: those of the machine, or a lower limit.

Limits come from `taskset`, cpusets and control groups (version 1 or 2), where all groups above that
of the process count too. They are read once per process, as jobs need them in every superstep. The
root of the file system is a parameter for tests.
"""

import functools
import math
import os
import re
import resource
import socket
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_ROOT = Path("/")
_GROUPS = "sys/fs/cgroup"


def num_cores(*, root: Path = _ROOT) -> int:
    """Return the number of cores that this process may use; a quota of 1.5 cores counts as 2."""
    quotas = [math.ceil(quota) for quota in _core_quotas(root)]
    return max(1, min([len(os.sched_getaffinity(0)), *quotas]))


def own_address(other: str) -> str:
    """Return the IP address from which this machine reaches another; empty if it does not.

    >>> own_address("127.0.0.1"), own_address("")
    ('127.0.0.1', '')
    """
    if not other:
        return ""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((other, 9))  # sends nothing: it only picks the interface
            return str(probe.getsockname()[0])
    except OSError:
        return ""


def processor_name(*, root: Path = _ROOT) -> str:
    """Return the model of the processor with its family and stepping; empty if unknown.

    The name alone says little: virtual machines on different processors report the same one.
    """
    lines = dict(re.findall(r"^([\w ]+?)\s*: (.*)$", _text(root / "proc/cpuinfo"), re.MULTILINE))
    names = ("model name", "cpu family", "model", "stepping", "cache size")
    return ", ".join(lines[name] for name in names if name in lines)


def process_age_s(*, root: Path = _ROOT) -> float:
    """Return the seconds since this process was started; without /proc, its processor time."""
    fields = _text(root / "proc/self/stat").rpartition(")")[2].split()
    if not fields:
        return time.process_time()
    started_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started_s


def memory_bytes(*, root: Path = _ROOT) -> int:
    """Return the bytes of memory that this process may use, including memory in use now."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([machine, *(limit for _, limit in _memory_limits(root))])


def available_memory_bytes(*, root: Path = _ROOT) -> int:
    """Return the bytes of memory that can be allocated now without swapping.

    Inactive file pages of a group do not count as used, as the kernel drops them first.
    """
    available = [memory_bytes(root=root)]
    if match := re.search(r"MemAvailable:\s*(\d+) kB", _text(root / "proc/meminfo")):
        available.append(int(match[1]) * 1024)
    for group, limit in _memory_limits(root):
        available.append(limit - _used_bytes(group))
    return max(0, min(available))


@functools.cache
def _core_quotas(root: Path) -> tuple[float, ...]:
    """Return the quotas, in cores, of all control groups that have one."""
    quotas = []
    for group in control_groups(root, "cpu"):
        quota, _, period = _text(group / "cpu.max").partition(" ")  # version 2: "max 100000"
        if not quota:
            quota = _text(group / "cpu.cfs_quota_us")  # version 1: -1 without a quota
            period = _text(group / "cpu.cfs_period_us")
        if quota.isdecimal() and period.isdecimal() and int(period):
            quotas.append(int(quota) / int(period))
    return tuple(quotas)


@functools.cache
def _memory_limits(root: Path) -> tuple[tuple[Path, int], ...]:
    """Return the control groups with a memory limit, and the limit of each in bytes."""
    limits = []
    for group in control_groups(root, "memory"):
        limit = _text(group / "memory.max") or _text(group / "memory.limit_in_bytes")
        if limit.isdecimal():  # no limit is "max" in version 2, and a huge number in version 1
            limits.append((group, int(limit)))
    return tuple(limits)


def _used_bytes(group: Path) -> int:
    """Return the bytes that a control group uses, without inactive file pages."""
    used = _text(group / "memory.current") or _text(group / "memory.usage_in_bytes")
    idle = re.search(
        r"^(?:total_)?inactive_file (\d+)$", _text(group / "memory.stat"), re.MULTILINE
    )
    return (int(used) if used.isdecimal() else 0) - (int(idle[1]) if idle else 0)


def control_groups(root: Path, controller: str) -> Iterator[Path]:
    """Yield the folders of the control groups of this process, up to the topmost group.

    In a container the path may be that of the host, which is not mounted. It does not exist then,
    and the topmost folder is the group of the process.
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
    """Return the content of a file of the kernel; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def peak_memory_bytes() -> int:
    """Return the peak memory in bytes of this process or of its largest child, if that is larger.

    For this process `ru_maxrss` is not used, as it includes the memory of the parent at its start.
    """
    status = Path("/proc/self/status").read_text()
    own = int(status.split("VmHWM:")[1].split()[0])
    return 1024 * max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
