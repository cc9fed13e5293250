"""The comparison of two commits: what counts as a regression, and one real comparison."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.compare import median_interval, row_of, run_pair

ROOT = Path(__file__).parents[1]


def pairs_with(ratios):
    return [(0.2, 0.2 * ratio) for ratio in ratios]


def test_the_interval_holds_the_median_and_lies_within_the_ratios():
    ratios = [0.9, 0.95, 1.0, 1.0, 1.01, 1.02, 1.05, 1.1, 1.4]
    low, high = median_interval(ratios)
    assert 0.9 <= low <= 1.01 <= high <= 1.4
    assert median_interval([1.2] * 9) == (1.2, 1.2)


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([1.04, 1.05, 1.06, 1.05, 1.04, 1.07, 1.05, 1.04, 1.06], "regression"),
        ([1.02] * 9, "same"),  # certain, but within what is allowed
        ([0.9, 0.8, 1.0, 1.3, 1.4, 1.1, 1.2, 0.95, 1.05], "same"),  # slower, but not certain
        ([0.9] * 9, "faster"),
    ],
)
def test_a_regression_is_an_interval_wholly_above_three_percent(ratios, verdict):
    assert row_of("case", pairs_with(ratios), "cpu")["verdict"] == verdict


def test_a_case_that_one_commit_cannot_run_is_not_compared():
    row = row_of("case", "base: ImportError: no such module", "cpu")
    assert row["verdict"] == "not compared (base: ImportError: no such module)"
    assert row["ratio"] == ""


class Constant:
    """A tree whose runs take a constant time after the first."""

    def __init__(self, seconds):
        self.seconds, self.asked = seconds, []

    def ask(self, case, *, repeats=1):
        self.asked.append(repeats)
        return repeats * self.seconds


def test_short_cases_are_repeated_alike_in_both_trees():
    base, this = Constant(0.01), Constant(0.02)
    assert run_pair([base, this], "case", swapped=False) == pytest.approx((0.01, 0.02))
    assert base.asked == this.asked == [1, 10, 10, 10]


@pytest.mark.slow
def test_this_tree_is_compared_with_its_own_commit(tmp_path):
    out = tmp_path / "rows.json"
    command = [sys.executable, "-m", "benchmarks.compare", "HEAD", "--pairs", "1"]
    done = subprocess.run(
        [*command, "--only", "events: emit", "--json", str(out)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    [row] = json.loads(out.read_text())["rows"]
    assert done.returncode == (row["verdict"] == "regression"), done.stderr
    assert float(row["ratio"]) > 0


def test_an_unknown_commit_is_refused():
    command = [sys.executable, "-m", "benchmarks.compare", "no-such-commit"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "'no-such-commit' is not a commit" in done.stderr
