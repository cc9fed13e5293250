import json
import os
import signal
import subprocess
import sys

import pytest

from talka.errors import RunDirectoryError
from talka.events import Failure, Run, RunEnded, RunStarted, read_run


def test_config_says_what_was_asked_where_and_with_which_versions(tmp_path):
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


def test_an_error_without_words_is_named_by_its_class(tmp_path):
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
    ended = subprocess.run([sys.executable, "-c", script, tmp_path], timeout=60)
    (run_dir,) = tmp_path.iterdir()
    assert ended.returncode == -signal.SIGKILL
    assert read_run(run_dir).status == "killed"


def test_a_run_of_another_machine_is_taken_as_running(tmp_path, monkeypatch):
    run = Run("count", {}, root=tmp_path)
    run.stream.close()
    monkeypatch.setattr("talka.events.reader.socket.gethostname", lambda: "elsewhere")
    assert read_run(run.dir).status == "running"


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


def test_a_root_that_cannot_be_written_is_an_error_that_says_so(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RunDirectoryError, match=r"cannot be written \(Not a directory\)"):
        Run("count", {}, root=tmp_path / "file" / "runs")
