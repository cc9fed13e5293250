import errno
import json
import os
import signal
import subprocess
import sys

import pytest

from talka.errors import DiskFullError, RunDirectoryError
from talka.events import Failure, Run, RunEnded, RunStarted, Stream, read_run


def test_config_has_options_machine_and_versions(tmp_path):
    with Run("count", {"dim": 100}, root=tmp_path) as run:
        pass
    config = json.loads((run.dir / "config.json").read_text())
    assert config["name"] == "count"
    assert config["config"] == {"dim": 100}
    assert config["pid"] == os.getpid()
    assert {"talka", "numpy", "pyarrow", "torch"} <= config["versions"].keys()


def test_two_runs_of_one_second_get_two_folders(tmp_path, monkeypatch):
    monkeypatch.setattr("talka.events.run.time.strftime", lambda format: "2026-11-15T17-40-00")
    names = []
    for _ in range(3):
        with Run("count", {}, root=tmp_path) as run:
            names.append(run.dir.name)
    stem = "2026-11-15T17-40-00-count"
    assert names == [stem, f"{stem}-2", f"{stem}-3"]


def test_a_block_that_ends_well_is_done(tmp_path):
    with Run("count", {}, root=tmp_path) as run:
        run.finish({"num_words": 3})
    record = read_run(run.dir)
    assert (record.status, record.result) == ("done", {"num_words": 3})
    assert [stamped.event for stamped in record.events] == [RunStarted("count"), RunEnded("done")]


def test_an_error_fails_the_run_and_leaves_its_traceback(tmp_path):
    run = Run("count", {}, root=tmp_path)
    with pytest.raises(ZeroDivisionError), run:
        _ = 1 / 0
    record = read_run(run.dir)
    failure = record.events[1].event
    assert record.status == "failed"
    assert isinstance(failure, Failure)
    assert failure.message == "division by zero"
    assert "test_run.py" in failure.detail


def test_an_error_without_a_message_is_named_by_its_class(tmp_path):
    run = Run("count", {}, root=tmp_path)
    with pytest.raises(MemoryError), run:
        raise MemoryError
    failure = read_run(run.dir).events[1].event
    assert isinstance(failure, Failure)
    assert failure.message == "MemoryError"


@pytest.mark.parametrize("signal_like", [KeyboardInterrupt, SystemExit(143)])
def test_ctrl_c_and_sigterm_interrupt_the_run(tmp_path, signal_like):
    run = Run("count", {}, root=tmp_path)
    with pytest.raises((KeyboardInterrupt, SystemExit)), run:
        raise signal_like
    assert read_run(run.dir).status == "interrupted"


def test_a_run_of_a_living_process_is_running(tmp_path):
    run = Run("count", {}, root=tmp_path)
    assert read_run(run.dir).status == "running"
    run.stream.close()


def test_a_run_of_a_dead_process_was_killed(tmp_path):
    script = """if True:
        import os, signal, sys
        from pathlib import Path
        from talka.events import Run
        Run("count", {}, root=Path(sys.argv[1]))
        os.kill(os.getpid(), signal.SIGKILL)
    """
    ended = subprocess.run([sys.executable, "-c", script, tmp_path], timeout=250)
    (run_dir,) = tmp_path.iterdir()
    assert ended.returncode == -signal.SIGKILL
    assert read_run(run_dir).status == "killed"


def test_a_run_whose_process_id_names_another_process_was_killed(tmp_path):
    run = Run("count", {}, root=tmp_path)
    run.stream.close()
    assert json.loads((run.dir / "config.json").read_text())["pid"] == os.getpid()
    assert read_run(run.dir).status == "killed"


def test_a_run_of_a_zombie_process_was_killed(tmp_path):
    child = os.fork()
    if not child:
        Run("count", {}, root=tmp_path)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    [run_dir] = tmp_path.iterdir()
    assert read_run(run_dir).status == "killed"
    os.waitpid(child, 0)


class TestAnotherMachine:
    @pytest.fixture
    def run_dir(self, tmp_path, monkeypatch):
        """A run of this machine that is read on another one, where its lock is invisible."""
        run = Run("count", {}, root=tmp_path)
        run.stream.close()
        monkeypatch.setattr("talka.events.liveness.socket.gethostname", lambda: "elsewhere")
        monkeypatch.setattr("talka.events.liveness.boot_id", lambda: "another")
        return run.dir

    def test_a_run_with_recent_events_is_running(self, run_dir):
        assert read_run(run_dir).status == "running"

    def test_a_run_that_was_silent_for_hours_was_killed(self, run_dir):
        os.utime(run_dir / "events.jsonl", (0, 0))
        assert read_run(run_dir).status == "killed"

    def test_a_run_before_the_machine_was_started_again_was_killed(self, run_dir, monkeypatch):
        host = json.loads((run_dir / "config.json").read_text())["host"]
        monkeypatch.setattr("talka.events.liveness.socket.gethostname", lambda: host)
        assert read_run(run_dir).status == "killed"


def test_a_run_of_an_earlier_version_is_judged_by_its_process(tmp_path):
    run = Run("count", {}, root=tmp_path)
    run.stream.close()
    path = run.dir / "config.json"
    config = json.loads(path.read_text())
    del config["boot_id"]
    path.write_text(json.dumps(config))
    assert read_run(run.dir).status == "running"
    path.write_text(json.dumps(config | {"pid": 2**22 + 1}))  # more than Linux gives
    assert read_run(run.dir).status == "killed"


def test_a_run_without_a_driver_has_just_ended(tmp_path):
    stream = Stream(tmp_path / "events.rank-0.jsonl")
    stream.emit(RunStarted("a"))
    assert read_run(tmp_path).status == "running"
    stream.close()
    assert read_run(tmp_path).status == "ended"


def test_without_finish_there_is_no_result(tmp_path):
    with Run("count", {}, root=tmp_path) as run:
        pass
    assert not (run.dir / "result.json").exists()
    assert read_run(run.dir).result is None


def test_a_result_that_cannot_be_written_leaves_no_part_of_it(tmp_path):
    run = Run("count", {}, root=tmp_path)
    with pytest.raises(TypeError), run:
        run.finish({"fine": 1, "not_plain": object()})
    assert sorted(path.name for path in run.dir.iterdir()) == ["config.json", "events.jsonl"]


def test_a_root_that_cannot_be_written_is_an_error_with_the_reason(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RunDirectoryError, match=r"cannot be written \(Not a directory\)"):
        Run("count", {}, root=tmp_path / "file" / "runs")


def fill_the_disk(monkeypatch):
    def refuse(file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", refuse)


def test_a_result_on_a_full_disk_is_an_error_that_names_the_file(tmp_path, monkeypatch):
    run = Run("count", {}, root=tmp_path)
    fill_the_disk(monkeypatch)
    with pytest.raises(DiskFullError, match=r"result\.json.*Free some space"), run:
        run.finish({"num_words": 3})
    assert not (run.dir / "result.json").exists()
    assert read_run(run.dir).status == "failed"


def test_a_full_disk_does_not_hide_the_error_that_ended_the_run(tmp_path):
    run = Run("count", {}, root=tmp_path)
    events = run.dir / "events.jsonl"
    run.stream.close()
    events.unlink()
    events.symlink_to("/dev/full")
    run.stream = Stream(events)
    with pytest.raises(ZeroDivisionError), run:
        _ = 1 / 0


class TestDiscarded:
    def test_nothing_is_left_not_even_the_folder_of_runs(self, tmp_path):
        with Run("count", {}, root=tmp_path / "runs") as run:
            pass
        run.discard()
        assert list(tmp_path.iterdir()) == []

    def test_other_runs_stay(self, tmp_path):
        with Run("first", {}, root=tmp_path) as first, Run("second", {}, root=tmp_path) as second:
            pass
        second.discard()
        assert list(tmp_path.iterdir()) == [first.dir]

    def test_an_existing_folder_of_runs_stays(self, tmp_path):
        with Run("count", {}, root=tmp_path) as run:
            pass
        run.discard()
        assert tmp_path.is_dir()

    def test_files_of_the_job_stay(self, tmp_path):
        with Run("count", {}, root=tmp_path) as run:
            (run.dir / "vectors").mkdir()
        run.discard()
        assert [path.name for path in run.dir.iterdir()] == ["vectors"]
