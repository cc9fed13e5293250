import json

import pytest

from talka.cli.commands import report
from talka.cli.parser import CommandParser
from talka.errors import OutputError, RunDirectoryError
from talka.events import Measured, Run
from tests.report.samples import kill, write_run, write_unfinished_run


def run_command(*words) -> int:
    parser = CommandParser()
    report.add_arguments(parser)
    return report.run(parser.parse_args([str(word) for word in words]))


@pytest.fixture
def run_dir(tmp_path):
    return write_run(tmp_path)


def test_text_has_the_comparison_and_where_the_page_is(run_dir, capsys):
    assert run_command(run_dir) == 0
    lines = capsys.readouterr().out.splitlines()
    (graph,) = [line for line in lines if line.startswith("graph")]
    assert graph.split()[1:7] == ["3", "s", "4", "s", "1.33x", "26.0"]
    assert lines[-1] == f"done  {run_dir / 'report.html'}"
    assert (run_dir / "report.html").exists()


def test_json_has_path_status_and_comparisons(run_dir, tmp_path, capsys):
    assert run_command(run_dir, "--out", tmp_path / "a.html", "--format", "json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["path"], printed["status"]) == (str(tmp_path / "a.html"), "done")
    assert printed["comparisons"][0] == {
        "cost_id": "read",
        "predicted_seconds": 2.0,
        "measured_seconds": pytest.approx(4.0),
        "seconds_ratio": pytest.approx(2.0),
        "predicted_bytes": None,
        "measured_bytes": None,
        "bytes_ratio": None,
        "reason": "3.1 GB at 1.5 GB/s from disk",
        "predicted_memory": None,
    }


def test_columns_that_nobody_filled_are_left_out(tmp_path, capsys):
    with Run("small", {}, root=tmp_path) as run:
        run.stream.emit(Measured("stage/[/0]", None, 1.5))
    run_command(run.dir)
    _, head, row, _ = capsys.readouterr().out.splitlines()
    assert head.split() == ["cost", "measured"]
    assert row.split() == ["stage/[/0]", "1.5", "s"]


def test_a_run_without_measurements_says_so(tmp_path, capsys):
    with Run("empty", {}, root=tmp_path) as run:
        pass
    run_command(run.dir)
    assert capsys.readouterr().out.startswith("This run has no predicted or measured costs")


def test_a_run_that_does_not_exist_is_the_callers_to_mend(tmp_path):
    with pytest.raises(RunDirectoryError) as error:
        run_command(tmp_path / "nothing")
    assert error.value.exit_code == 2


def test_a_folder_as_out_is_the_callers_to_mend(run_dir, tmp_path):
    with pytest.raises(OutputError) as error:
        run_command(run_dir, "--out", tmp_path)
    assert error.value.exit_code == 2


def test_a_killed_run_is_reported_with_a_warning(tmp_path, capsys):
    run_dir = write_unfinished_run(tmp_path)
    assert run_command(run_dir) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1].startswith("running  ")
    assert printed.err == ""
    kill(run_dir)
    assert run_command(run_dir) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1].startswith("killed  ")
    assert "the run did not finish" in printed.err


def test_damaged_events_are_reported_with_a_warning_and_an_exit_code(run_dir, capsys):
    with (run_dir / "events.jsonl").open("a") as file:
        file.write("garbage\n" * 3)
    assert run_command(run_dir) == 1
    assert "3 lines of event files could not be read, 3 of them" in capsys.readouterr().err
    assert (run_dir / "report.html").exists()
