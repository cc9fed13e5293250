import pytest

from talka.errors import DiskFullError, EdgeFileError, InvalidValueError
from talka.events import read_run
from talka.jobs.base import execute


class Failing:
    """A job that ends with an error."""

    name, config = "failing", {}

    def __init__(self, error):
        self.error = error

    def run(self, events):
        with events.phase("read"):
            raise self.error


@pytest.mark.parametrize(
    "error",
    [
        InvalidValueError("--source", "9", "the id of a vertex"),
        EdgeFileError("edges", 3, "is no edge", "Mend it."),
    ],
)
def test_a_wrong_input_leaves_no_run_directory(tmp_path, error):
    with pytest.raises(type(error)):
        execute(Failing(error), [], root=tmp_path / "runs")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [ZeroDivisionError(), DiskFullError("a.csv", "is", "")])
def test_a_job_that_fails_leaves_a_run_directory_that_says_why(tmp_path, error):
    with pytest.raises(type(error)):
        execute(Failing(error), [], root=tmp_path)
    [run_dir] = tmp_path.iterdir()
    assert read_run(run_dir).status == "failed"
