"""The profile of the machine: what is kept, when it is measured again, and damaged files."""

import json
import threading

import pytest

from talka.profile import MEMORY, Profile, Trial
from talka.profile import profile as profile_module
from talka.profile import trial as trial_module
from talka.profile.profile import MIN_AGE_S
from talka.profile.trial import median_seconds


class Counting:
    """A trial that counts its runs; each run returns the next of the given figures."""

    def __init__(self, *figures, name="test/trial", packages=()):
        self.num_runs = 0
        self._figures = figures or (1.0,)
        self.trial = Trial(name, "a test", ("value_s",), self._run, packages)

    def _run(self):
        self.num_runs += 1
        return {"value_s": self._figures[min(self.num_runs, len(self._figures)) - 1]}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "profile.json"


def test_a_trial_runs_once_for_all_processes(path):
    counting = Counting(3.0)
    assert Profile(path).figures(counting.trial) == {"value_s": 3.0}
    assert Profile(path).figures(counting.trial) == {"value_s": 3.0}
    assert counting.num_runs == 1


def test_what_is_not_known_is_not_measured_unless_needed(path):
    counting = Counting(3.0)
    assert Profile(path).kept(counting.trial) is None
    Profile(path).figures(counting.trial)
    assert Profile(path).kept(counting.trial) == {"value_s": 3.0}
    assert counting.num_runs == 1


def test_threads_that_ask_at_the_same_time_share_one_run(path):
    counting = Counting()
    profiles = [Profile(path) for _ in range(4)]
    threads = [
        threading.Thread(target=profile.figures, args=(counting.trial,)) for profile in profiles
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counting.num_runs == 1


def test_two_profiles_keep_what_the_other_has_measured(path):
    first, second = Profile(path), Profile(path)
    first.figures(Counting(name="a").trial)
    second.figures(Counting(name="b").trial)
    assert set(Profile(path).known()) == {"a", "b"}


def test_a_trial_with_other_figures_measures_again(path):
    Profile(path).figures(Counting(1.0).trial)
    newer = Trial("test/trial", "a test", ("other_s",), lambda: {"other_s": 2.0})
    assert Profile(path).figures(newer) == {"other_s": 2.0}


@pytest.mark.parametrize("changed", ["processor_name", "num_cores"])
def test_another_machine_measures_again(path, monkeypatch, changed):
    counting = Counting()
    Profile(path).figures(counting.trial)
    monkeypatch.setattr(profile_module, changed, lambda: "another")
    Profile(path).figures(counting.trial)
    assert counting.num_runs == 2


def test_another_version_of_a_package_measures_again(path, monkeypatch):
    concerned, other = Counting(name="a", packages=("numba",)), Counting(name="b")
    for counting in (concerned, other):
        Profile(path).figures(counting.trial)
    versions = {"numba": "99", "talka": profile_module._version("talka")}
    monkeypatch.setattr(profile_module, "_version", versions.__getitem__)
    for counting in (concerned, other):
        Profile(path).figures(counting.trial)
    assert (concerned.num_runs, other.num_runs) == (2, 1)


class Clock:
    """A clock that a test can put forward."""

    now_s = 1e9

    def __call__(self):
        return self.now_s


class TestJudgement:
    @pytest.fixture
    def clock(self):
        return Clock()

    def test_three_wrong_predictions_in_a_row_measure_again(self, path, clock):
        counting = Counting(1.0, 5.0)
        profile = Profile(path, now=clock)
        profile.figures(counting.trial)
        for ratio in (1.4, 0.7, 1.0, 2.0, 0.1):  # a right one in between
            profile.judge({"test/trial": ratio})
        assert profile.figures(counting.trial) == {"value_s": 1.0}
        profile.judge({"test/trial": 1.31})
        clock.now_s += MIN_AGE_S - 1
        assert profile.figures(counting.trial) == {"value_s": 1.0}, "perhaps the machine is busy"
        clock.now_s += 1
        assert Profile(path, now=clock).figures(counting.trial) == {"value_s": 5.0}
        assert counting.num_runs == 2

    def test_a_confirmed_figure_is_doubted_later_the_next_time(self, path, clock):
        counting = Counting(1.0, 1.2)
        profile = Profile(path, now=clock)
        for num_wrong in (3, 6):
            profile.figures(counting.trial)
            clock.now_s += MIN_AGE_S
            for _ in range(num_wrong):
                assert not profile.known()["test/trial"].is_doubted(clock.now_s)
                profile.judge({"test/trial": 3.0})
            assert profile.known()["test/trial"].is_doubted(clock.now_s)

    def test_nobody_waits_for_the_trial_of_another_process(self, path):
        profile, other = Profile(path), Profile(path)
        profile.figures(Counting().trial)

        def measure():
            profile.judge({"test/trial": 3.0})  # would never return if it waited
            return {"value_s": 1.0}

        other.figures(Trial("another", "a test", ("value_s",), measure))
        assert Profile(path).known()["test/trial"].num_misses == 0

    def test_predictions_of_unknown_trials_are_ignored(self, path):
        Profile(path).judge({"never/measured": 9.0})
        assert Profile(path).known() == {}


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("1.0", "NaN"),
        lambda text: text.replace("1.0", "-1"),
        lambda text: text.replace("1.0", '"1"'),
        lambda text: text.replace("1.0", "1e999"),
        lambda text: text.replace('"figures"', '"figure"'),
        lambda text: "[]",
        lambda text: "[" * 100_000,
        lambda text: json.dumps({"machine": json.loads(text)["machine"], "trials": []}),
    ],
)
def test_a_damaged_file_counts_as_empty(path, damage):
    Profile(path).figures(Counting(1.0).trial)
    path.write_text(damage(path.read_text()))
    counting = Counting(2.0)
    assert Profile(path).figures(counting.trial) == {"value_s": 2.0}
    assert Profile(path).figures(counting.trial) == {"value_s": 2.0}
    assert counting.num_runs == 1


def test_a_folder_that_cannot_be_written_only_means_measuring_again(tmp_path):
    path = tmp_path / "missing" / "profile.json"
    counting = Counting()
    for _ in range(2):
        Profile(path).figures(counting.trial)
    assert counting.num_runs == 2


def test_seconds_of_trials_are_counted(path):
    profile = Profile(path)
    assert profile.measuring_s == 0.0
    profile.figures(Counting().trial)
    assert profile.measuring_s > 0.0


def test_the_trial_of_the_memory_returns_plausible_rates():
    figures = MEMORY.measure()
    assert set(figures) == {"copy_bytes_per_s", "fresh_bytes_per_s"}
    assert all(1e6 < rate < 1e13 for rate in figures.values())


def test_the_first_round_is_not_counted_and_the_median_is_taken(monkeypatch):
    class Clock:
        now_s = 0.0

        def perf_counter(self):
            return self.now_s

    clock, seconds = Clock(), iter([100.0, 3.0, 1.0, 2.0, 50.0, 2.0])
    monkeypatch.setattr(trial_module, "time", clock)

    def work():
        clock.now_s += next(seconds)

    assert median_seconds(work) == 2.0
