"""Outputs in memory up to a budget, then on disk."""

import errno
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from talka.engine import Embedded, segments, storage
from talka.engine.events import Spilled
from talka.engine.segments import StorageSegment
from talka.engine.store import Store
from talka.errors import StorageFullError
from tests.engine.engines import Recorder

MB = 1_000_000


def block(number):
    return np.full(MB // 8, float(number))


@pytest.fixture
def spills():
    return []


@pytest.fixture
def store(tmp_path, spills):
    return Store(3 * MB, tmp_path, lambda num_bytes, seconds: spills.append(num_bytes))


def test_the_least_recently_used_are_moved_to_disk(store, spills):
    for number in range(3):
        store.put(number, storage.to_storable(block(number)))
        if number == 1:
            store.get(0)
    assert len(spills) == 1
    assert store.used_bytes <= 3 * MB
    assert isinstance(store._entries[1].content, storage.File)
    assert not isinstance(store._entries[0].content, storage.File)
    for number in range(3):
        np.testing.assert_array_equal(store.get(number), block(number))


def test_shared_values_can_be_moved_to_disk(store, spills):
    store.put(0, storage.to_storable(block(0)))
    assert not store.share([0])[0].on_disk
    for number in range(1, 4):
        store.put(number, storage.to_storable(block(number)))
    assert store.share([0])[0].on_disk
    np.testing.assert_array_equal(store.get(0), block(0))


def test_sharing_writes_once(store):
    store.put(0, storage.to_storable(block(0)))
    [first], [second] = store.share([0]), store.share([0])
    assert first is second


def test_sharing_a_missing_output_returns_none(store):
    store.put(0, storage.to_storable(block(0)))
    there, missing = store.share([0, 1])
    assert there is not None
    assert missing is None


def test_files_in_shared_memory_become_values_again_before_descriptors_run_out(store, monkeypatch):
    already = segments.num_open()
    monkeypatch.setattr(segments, "MIN_OPEN", 0)
    monkeypatch.setattr(segments, "max_open", lambda: already + 4)
    monkeypatch.setattr(store, "memory_bytes", 100 * MB)
    for number in range(12):
        content = storage.to_storable(block(number))
        store.put(number, storage.into_file(content, StorageSegment.create()))
        assert segments.num_open() <= already + 5
    for number in range(12):
        np.testing.assert_array_equal(store.get(number), block(number))
        store.share([number])
    assert segments.num_open() <= already + 5
    assert store.used_bytes < 13 * MB


def test_values_on_disk_need_few_descriptors(tmp_path):
    store = Store(100_000, tmp_path, lambda num_bytes, seconds: None)
    before = segments.num_open()
    for number in range(300):
        store.put(number, storage.to_storable(np.full(10_000, number)))
    assert segments.num_open() - before <= 30
    assert all(store.get(number)[0] == number for number in range(300))
    for number in range(300):
        store.discard(number)
    assert store._spilled_bytes == 0


def test_discarding_frees_memory(store):
    store.put(0, storage.to_storable(block(0)))
    store.put(1, storage.pack("x"))
    store.discard(0)
    store.discard(1)
    store.discard(2)
    assert store.used_bytes == 0
    with pytest.raises(KeyError):
        store.get(0)


def test_a_disk_error_loses_no_output(store, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    for number in range(2):
        store.put(number, storage.to_storable(block(number)))
    with pytest.raises(StorageFullError, match="No space left on device"):
        store.put(2, storage.to_storable(np.zeros(2 * MB // 8)))
    for number in range(2):
        np.testing.assert_array_equal(store.get(number), block(number))
    assert store.used_bytes < 3 * MB


@pytest.fixture
def small_disk(tmp_path):
    """Provide a real file system of 4 MB."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small file system")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "talka", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("python", [False, True], ids=["native", "python"])
def test_a_full_disk_is_an_error_and_keeps_stored_outputs(small_disk, python):
    with Embedded(memory_bytes=3 * MB, spill_dir=small_disk) as engine:
        refs, error = [], None
        for number in range(12):
            ref = engine.submit(block, number, python=python)
            engine.wait([ref])
            try:
                engine.fetch(ref)
                refs.append((number, ref))
            except StorageFullError as full:
                error = full
                break
        assert "No space left" in str(error)
        assert "Free disk space" in str(error)
        assert 4 <= len(refs) <= 8
        for number, ref in refs:
            np.testing.assert_array_equal(engine.fetch(ref), block(number))


def held_bytes():
    """Return the memory of this process: private pages, and shared memory of its descriptors."""
    status = Path("/proc/self/status").read_text()
    held = 1024 * int(re.search(r"RssAnon:\s+(\d+)", status)[1])
    for descriptor in os.listdir("/proc/self/fd"):
        link = f"/proc/self/fd/{descriptor}"
        if os.path.islink(link) and os.readlink(link).startswith("/memfd:talka"):
            held += 512 * os.stat(link).st_blocks
    return held


@pytest.mark.parametrize("python", [False, True], ids=["native", "python"])
def test_the_memory_budget_holds(tmp_path, python):
    """Store 600 MB in a budget of 100 MB; two workers have another block each in progress."""
    recorder = Recorder()
    budget, size = 100 * MB, 20 * MB
    with Embedded(
        threads=2, processes=2, memory_bytes=budget, spill_dir=tmp_path, events=recorder
    ) as engine:
        engine.fetch(engine.submit(lambda: np.ones(8), python=python))
        before = held_bytes()
        refs, most = [], 0
        for number in range(30):
            refs.append(
                engine.submit(lambda n: np.full(size // 8, float(n)), number, python=python)
            )
            engine.wait(refs[-1:])
            most = max(most, held_bytes() - before)
            assert engine.stored_bytes <= budget
        assert most <= budget + 4 * size
        assert sum(e.num_bytes for e in recorder.events if isinstance(e, Spilled)) >= 480 * MB
        assert [engine.fetch(ref)[0] for ref in refs] == list(range(30))
        engine.release(refs)
        assert engine.stored_bytes < MB
    assert list(tmp_path.iterdir()) == []
