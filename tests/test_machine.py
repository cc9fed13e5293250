"""Limits of cores and memory, with fake file systems of the kernel and on this machine."""

import os
import threading

import pytest

from talka import machine
from talka.engine import Embedded
from talka.machine import available_memory_bytes, memory_bytes, num_cores, processor_name

MB = 10**6
GROUPS = "sys/fs/cgroup"


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Provide a machine with 8 cores and 16 GB, half of it free, without control groups."""
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda pid: set(range(8)))
    monkeypatch.setattr(machine.os, "sysconf", {"SC_PHYS_PAGES": 4 * MB, "SC_PAGE_SIZE": 4000}.get)
    write(tmp_path, {"proc/meminfo": "MemTotal: 16000000 kB\nMemAvailable:  7812500 kB\n"})
    return tmp_path


def write(root, files):
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def test_without_control_groups_the_limits_are_those_of_the_machine(root):
    assert num_cores(root=root) == 8
    assert memory_bytes(root=root) == 16_000 * MB
    assert available_memory_bytes(root=root) == 8_000 * MB


@pytest.mark.parametrize("mount", [GROUPS, f"{GROUPS}/unified"])
def test_in_version_2_all_groups_up_to_the_root_count(root, mount):
    write(
        root,
        {
            "proc/self/cgroup": "0::/machine/pod/container\n",
            f"{mount}/machine/memory.max": "900000000\n",
            f"{mount}/machine/pod/memory.max": "400000000\n",
            f"{mount}/machine/pod/cpu.max": "250000 100000\n",
            f"{mount}/machine/pod/container/memory.max": "max\n",
            f"{mount}/machine/pod/container/cpu.max": "max 100000\n",
        },
    )
    assert memory_bytes(root=root) == 400 * MB
    assert available_memory_bytes(root=root) == 400 * MB
    assert num_cores(root=root) == 3


@pytest.mark.parametrize("path", ["/", "/docker/of/the/host", "/../.."])
def test_in_a_container_the_topmost_group_is_that_of_the_process(root, path):
    write(
        root,
        {
            "proc/self/cgroup": f"0::{path}\n",
            f"{GROUPS}/memory.max": "400000000\n",
            f"{GROUPS}/cpu.max": "50000 100000\n",
        },
    )
    assert memory_bytes(root=root) == 400 * MB
    assert num_cores(root=root) == 1


@pytest.mark.parametrize("mount", ["cpu,cpuacct", "cpu"])
def test_version_1(root, mount):
    write(
        root,
        {
            "proc/self/cgroup": "9:memory:/box/inner\n4:cpu,cpuacct:/box\n1:name=systemd:/x\n",
            f"{GROUPS}/memory/memory.limit_in_bytes": "9223372036854771712\n",
            f"{GROUPS}/memory/box/memory.limit_in_bytes": "400000000\n",
            f"{GROUPS}/memory/box/inner/memory.limit_in_bytes": "9223372036854771712\n",
            f"{GROUPS}/{mount}/box/cpu.cfs_quota_us": "200000\n",
            f"{GROUPS}/{mount}/box/cpu.cfs_period_us": "100000\n",
            f"{GROUPS}/{mount}/cpu.cfs_quota_us": "-1\n",
            f"{GROUPS}/{mount}/cpu.cfs_period_us": "100000\n",
        },
    )
    assert memory_bytes(root=root) == 400 * MB
    assert num_cores(root=root) == 2


@pytest.mark.parametrize(
    "groups, current, stat",
    [("0::/a", "memory.current", "inactive_file"),
     ("3:memory:/a", "memory.usage_in_bytes", "total_inactive_file")],
)  # fmt: skip
def test_memory_used_by_the_group_is_not_available_except_inactive_file_pages(
    root, groups, current, stat
):
    folder = f"{GROUPS}/a" if groups.startswith("0") else f"{GROUPS}/memory/a"
    limit = "memory.max" if groups.startswith("0") else "memory.limit_in_bytes"
    write(
        root,
        {
            "proc/self/cgroup": groups,
            f"{folder}/{limit}": "400000000",
            f"{folder}/{current}": "300000000",
            f"{folder}/memory.stat": f"anon 1\n{stat} 50000000\nslab 3\n",
        },
    )
    assert memory_bytes(root=root) == 400 * MB
    assert available_memory_bytes(root=root) == 150 * MB
    write(root, {f"{folder}/{current}": "600000000"})
    assert available_memory_bytes(root=root) == 0


@pytest.mark.parametrize("text", ["", "0", "::", "nonsense\n\n", "0::/a:b\n"])
def test_an_invalid_list_of_groups_sets_no_limit(root, text):
    write(root, {"proc/self/cgroup": text, f"{GROUPS}/memory.max": "soon"})
    assert memory_bytes(root=root) == 16_000 * MB
    assert num_cores(root=root) == 8


def test_taskset_counts():
    """Run in a thread, which has a separate affinity."""
    found = []

    def look():
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        found.append(num_cores())

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [1]


def test_this_machine_has_cores_and_memory():
    assert num_cores() >= 1
    assert 0 < available_memory_bytes() <= memory_bytes()


def test_an_engine_uses_at_most_the_limits_of_the_process(monkeypatch):
    monkeypatch.setattr(machine, "num_cores", lambda: 3)
    monkeypatch.setattr(machine, "memory_bytes", lambda: 400 * MB)
    with Embedded() as engine:
        assert engine._native._max_threads == engine._python._max_threads == 3
        assert engine._store.memory_bytes == 200 * MB


def test_the_name_of_the_processor_includes_its_family(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(
        "processor\t: 0\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: Some CPU\nstepping\t: 7\n"
        "cpu MHz\t\t: 2500.1\n\nprocessor\t: 1\ncpu family\t: 6\nmodel name\t: Some CPU\n"
    )
    assert processor_name(root=tmp_path) == "Some CPU, 6, 85, 7"
    assert processor_name(root=tmp_path / "missing") == ""
