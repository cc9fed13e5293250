"""`talka profile` with a trial that takes no time."""

import json

import pytest

from talka.cli.main import main
from talka.jobs.profiling import all_trials
from talka.profile import Profile, Trial


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Return the list of runs of the only trial."""
    runs, profile = [], Profile(tmp_path / "profile.json")

    def measure():
        runs.append(len(runs))
        return {"copy_bytes_per_s": 5e9, "start_s": 0.25, "unused_s": 0.0}

    trial = Trial("a/b", "text", ("copy_bytes_per_s", "start_s", "unused_s"), measure)
    monkeypatch.setattr("talka.jobs.profiling.all_trials", lambda: [trial])
    monkeypatch.setattr("talka.profile.this_machine", lambda: profile)
    return runs


def test_a_table_shows_each_trial_with_units(runs, capsys):
    assert main(["profile"]) == 0
    printed = capsys.readouterr().out
    assert "a/b" in printed
    assert "copy 5.00 GB/s, start 250 ms" in " ".join(printed.split())
    assert "unused" not in printed


def test_known_figures_are_measured_again_only_if_asked(runs, capsys):
    for option in ([], [], ["--again"]):
        assert main(["profile", "--format", "json", *option]) == 0
    assert len(runs) == 2
    [trial] = json.loads(capsys.readouterr().out.split("\n}\n")[0] + "\n}")["trials"]
    assert trial["trial"] == "a/b"
    assert trial["figures"]["start_s"] == 0.25


def test_the_trials_of_the_pillars_have_names_of_their_own():
    names = [trial.name for trial in all_trials()]
    assert len(names) == len(set(names)) > 5
    assert all(" " not in name for name in names)
