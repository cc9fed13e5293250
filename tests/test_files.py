"""Files that are written completely or not at all, also if the writer is killed."""

import errno
import os
import signal
from pathlib import Path

import pytest

from talka.files import TEMPORARY_NAME, whole_file, write_whole
from talka.files import writing as files


@pytest.fixture(params=["unnamed", "named"])
def path(request, tmp_path, monkeypatch):
    """Provide a path on a file system with unnamed files, and on one without."""
    if request.param == "named":
        real_open = os.open

        def open_named(path, flags, mode=0o777, **options):
            if flags & os.O_TMPFILE == os.O_TMPFILE:
                raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
            return real_open(path, flags, mode, **options)

        monkeypatch.setattr(os, "open", open_named)
    return tmp_path / "result.json"


def in_a_fork(run):
    """Return the exit code, or the negative signal, of `run` in a forked process."""
    child = os.fork()
    if not child:
        try:
            run()
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def write_and_die(path, *, moment=None):
    """Write a file and get killed inside the block, or at the call of `moment`."""

    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    def run():
        if moment is not None:
            owner, name = moment
            setattr(owner, name, die)
        with whole_file(path) as beside:
            beside.write_text("half")
            if moment is None:
                die()

    assert in_a_fork(run) == -signal.SIGKILL


def names_in(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_the_content_appears_at_once_and_replaces_what_was_there(path):
    path.write_text("old")
    with whole_file(path) as beside:
        beside.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert names_in(path.parent) == ["result.json"]


def test_an_error_leaves_the_old_file_and_nothing_else(path):
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "half a surrogate pair: \ud800")
    assert path.read_text() == "old"
    assert names_in(path.parent) == ["result.json"]


def test_a_killed_writer_leaves_no_file(tmp_path):
    write_and_die(tmp_path / "result.json")
    assert names_in(tmp_path) == []


def test_files_of_a_killed_writer_are_removed_by_the_next_write(path):
    for moment in (None, (Path, "replace")):
        write_and_die(path, moment=moment)
    assert all(TEMPORARY_NAME.fullmatch(name) for name in names_in(path.parent))
    assert names_in(path.parent), "the last kill was between the link and the rename"
    write_whole(path, "{}")
    assert names_in(path.parent) == ["result.json"]


def test_the_temporary_file_of_a_living_writer_stays(path, monkeypatch):
    replaced = []

    def write_again(beside, target):
        monkeypatch.undo()
        replaced.append(beside)
        write_whole(path, "second")
        assert beside.read_text() == "first"
        beside.rename(target)

    monkeypatch.setattr(Path, "replace", write_again)
    write_whole(path, "first")
    assert len(replaced) == 1
    assert path.read_text() == "first"


def test_files_of_others_with_similar_names_stay(path):
    others = [".result.json.settings", ".talka-mine", ".talka-00000000-00000000"]
    for name in others:
        path.with_name(name).touch()
    write_whole(path, "{}")
    assert names_in(path.parent) == sorted([*others, "result.json"])


def test_the_mode_follows_the_umask_which_is_never_changed(path, monkeypatch):
    before = os.umask(0o027)
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("other threads create files, too"))
    try:
        write_whole(path, "{}")
    finally:
        monkeypatch.undo()
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640


def test_the_content_is_on_the_disk_before_the_name_and_the_name_before_the_end(path, monkeypatch):
    done = []
    real_sync, real_replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda file: (done.append("sync"), real_sync(file)))
    monkeypatch.setattr(
        Path, "replace", lambda self, to: (done.append("rename"), real_replace(self, to))
    )
    write_whole(path, "{}")
    assert done == ["sync", "rename", "sync"]


def test_a_file_name_of_maximum_length_can_be_written(path):
    longest = path.with_name("n" * 255)
    write_whole(longest, "{}")
    assert names_in(path.parent) == [longest.name]


def test_descriptors_are_closed(path):
    before = os.listdir("/proc/self/fd")
    write_whole(path, "{}")
    with pytest.raises(FileNotFoundError):
        write_whole(path.parent / "missing" / "x", "{}")
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize("path", ["named"], indirect=True)
def test_a_file_that_is_removed_before_it_was_locked_is_made_again(path, monkeypatch):
    """Another writer may remove abandoned files between the creation and the lock."""
    real_lock, removed = files.lock_now, []

    def lock_late(handle):
        if not removed:
            removed.extend(path.parent.iterdir())
            removed[0].unlink()
        return real_lock(handle)

    monkeypatch.setattr(files, "lock_now", lock_late)
    write_whole(path, "{}")
    assert len(removed) == 1
    assert names_in(path.parent) == ["result.json"]
