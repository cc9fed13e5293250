import math

import pytest

from talka.errors import DiskFullError, EdgeFileError, InvalidValueError
from talka.events import read_run
from talka.jobs.base import execute, with_start
from talka.plans import Part
from talka.profile import Profile, Trial


class Failing:
    """A job that ends with an error."""

    name, config, planned_s = "failing", {}, 0.0

    def __init__(self, error):
        self.error = error

    def explain(self):
        return Part(cost_id="failing", seconds=1.0)

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
        execute(Failing(error), root=tmp_path / "runs")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [ZeroDivisionError(), DiskFullError("a.csv", "is", "")])
def test_a_job_that_fails_leaves_a_run_directory_that_says_why(tmp_path, error):
    with pytest.raises(type(error)):
        execute(Failing(error), root=tmp_path)
    [run_dir] = tmp_path.iterdir()
    assert read_run(run_dir).status == "failed"


class Sleeping:
    """A job that predicts one second, measured by a trial, and takes none."""

    name, config, planned_s = "sleeping", {}, 0.0

    def explain(self):
        work = Part(cost_id="sleeping/work", seconds=1.0, trials=("test/trial",))
        return Part.of("sleeping", [work])

    def run(self, events):
        with events.phase("sleeping/work"):
            return {"slept": True}


@pytest.fixture
def profile(tmp_path, monkeypatch):
    profile = Profile(tmp_path / "profile.json")
    profile.figures(Trial("test/trial", "a test", ("work_s",), lambda: {"work_s": 1.0}))
    monkeypatch.setattr("talka.jobs.base.this_machine", lambda: profile)
    return profile


def test_the_whole_job_and_its_start_are_measured_beside_their_predictions(tmp_path, profile):
    plan = Sleeping()
    finished = execute(plan, with_start(plan), root=tmp_path / "runs")
    costs = {cost.cost_id: cost for cost in finished.comparisons}
    assert list(costs) == ["sleeping", "sleeping/start", "sleeping/work"]
    assert all(cost.predicted and cost.measured for cost in costs.values())
    assert costs["sleeping"].measured.seconds > costs["sleeping/start"].measured.seconds


def test_predictions_that_are_wrong_three_times_make_the_profile_doubt(tmp_path, profile):
    for num_misses in range(3):
        assert profile.known()["test/trial"].num_misses == num_misses
        execute(Sleeping(), root=tmp_path / "runs")
    assert profile.known()["test/trial"].is_doubted(math.inf)
