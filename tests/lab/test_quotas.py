"""Where control groups are made, and which are removed: folders of the tests stand in for the kernel's."""

import errno
import fcntl
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talka.errors import LabError
from talka.lab import quotas
from talka.lab.base import MIN_CORES
from talka.lab.quotas import LabGroup, parents, period_and_quota, remove_stale_in


def add(root, path, text=""):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@given(st.floats(MIN_CORES, 64))
def test_a_quota_is_one_that_the_kernel_takes_and_its_pauses_are_short(cores):
    period_s, quota_s = period_and_quota(cores)
    assert quota_s / period_s == pytest.approx(cores)
    assert quota_s >= 0.001 * (1 - 1e-9)
    assert period_s <= max(0.02, 0.001 / cores) * (1 + 1e-9)


def test_version_1_has_a_group_below_that_of_this_process(tmp_path):
    add(tmp_path, "proc/self/cgroup", "3:memory:/x\n1:cpu,cpuacct:/job\n0::/\n")
    add(tmp_path, "sys/fs/cgroup/cpu,cpuacct/cpu.shares")
    add(tmp_path, "sys/fs/cgroup/cpu,cpuacct/job/cpu.shares")
    group = LabGroup.create(root=tmp_path)
    assert group.folder.parent == tmp_path / "sys/fs/cgroup/cpu,cpuacct/job"
    group.remove()
    assert not group.folder.exists()


def test_version_2_has_a_group_where_the_controller_is_enabled(tmp_path):
    top = "sys/fs/cgroup"
    add(tmp_path, "proc/self/cgroup", "0::/user.slice/session\n")
    add(tmp_path, f"{top}/cgroup.subtree_control", "cpu memory")
    add(tmp_path, f"{top}/user.slice/cgroup.subtree_control", "cpu memory")
    add(tmp_path, f"{top}/user.slice/session/cgroup.subtree_control", "cpuset")
    assert list(parents(tmp_path)) == [tmp_path / top / "user.slice", tmp_path / top]


def test_hosts_have_the_weights_of_their_quotas(tmp_path, monkeypatch):
    """Files of groups that the kernel would make are there before."""
    monkeypatch.setattr(quotas, "_try_to_join", lambda members: None)
    for host, files in enumerate((("cpu.weight", "cpu.max"), ("cpu.shares",))):
        for name in (*files, "cgroup.procs"):
            add(tmp_path, f"host-{host}/{name}")
    monkeypatch.setattr(Path, "mkdir", lambda path: None)
    group = LabGroup(tmp_path, -1)
    for host in range(2):
        os.close(group.limit(host, 0.25))
    assert (tmp_path / "host-0/cpu.weight").read_text() == "25"
    assert (tmp_path / "host-0/cpu.max").read_text() == "2500 10000"
    assert (tmp_path / "host-1/cpu.shares").read_text() == "256"
    assert (tmp_path / "host-1/cpu.cfs_quota_us").read_text() == "2500"
    assert (tmp_path / "host-1/cpu.cfs_period_us").read_text() == "10000"


def test_without_the_controller_the_error_says_what_to_do(tmp_path):
    add(tmp_path, "proc/self/cgroup", "0::/\n")
    add(tmp_path, "sys/fs/cgroup/cgroup.subtree_control", "memory")
    with pytest.raises(LabError, match="has the `cpu` controller.*Run it as root.*set no quotas"):
        LabGroup.create(root=tmp_path)


def test_a_group_that_cannot_be_made_is_named(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    add(tmp_path, "proc/self/cgroup", "1:cpu:/\n")
    add(tmp_path, "sys/fs/cgroup/cpu/cpu.shares")
    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(LabError, match="sys/fs/cgroup/cpu: Permission denied.*Run it as root"):
        LabGroup.create(root=tmp_path)


def test_only_groups_whose_keeper_has_ended_are_removed(tmp_path):
    for name in ("talka-lab-1-0/host-0", "talka-lab-2-0/host-3", "other"):
        (tmp_path / name).mkdir(parents=True)
    lock = os.open(tmp_path / "talka-lab-2-0", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    remove_stale_in(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["other", "talka-lab-2-0"]
    os.close(lock)
    remove_stale_in(tmp_path)
    assert os.listdir(tmp_path) == ["other"]
