"""Decisions about a gang, without processes and without waiting."""

import pytest

from talka.engine.gangs.outcomes import GRACE_S, Outcomes, Sign, culprit
from talka.errors import GangError


def outcomes(size=3, on_failure="end", timeout_s=None):
    return Outcomes(size, on_failure=on_failure, timeout_s=timeout_s, start_s=100.0)


def tail(rank):
    return f"log of {rank}"


def test_a_death_is_reported_before_the_errors_that_it_caused():
    echo = Sign(0, 1.0, died=False, how="connection closed")
    death = Sign(2, 1.3, died=True, how="died")
    assert culprit([echo, death]) is death
    assert culprit([Sign(1, 2.0, died=False, how="later"), echo]) is echo


def test_a_gang_is_over_when_all_ranks_have_finished():
    gang = outcomes()
    for rank in (2, 0):
        gang.finished(rank, f"result {rank}")
    assert gang.running == (1,)
    assert not gang.is_over
    gang.finished(1, None)
    assert gang.is_over
    assert gang.results(tail) == ["result 0", None, "result 2"]
    assert gang.left_s(1e9) is None


def test_the_first_failure_ends_the_gang_after_a_grace_period_in_which_a_death_may_show():
    gang = outcomes()
    assert gang.failed(0, 110.0, died=False, how="raised an echo") == ()
    assert gang.left_s(110.0) == GRACE_S
    assert gang.failed(2, 110.3, died=True, how="died (exit code 7)") == ()
    assert gang.left_s(110.3) == pytest.approx(GRACE_S - 0.3)
    assert gang.expired(110.4) == ()
    assert not gang.is_over
    assert gang.expired(110.5) == (1,)
    assert gang.is_over
    with pytest.raises(GangError, match=r"rank 2 of 3 died \(exit code 7\).*\n  \| log of 2"):
        gang.results(tail)


def test_a_failure_after_its_result_does_not_count():
    gang = outcomes(size=2)
    gang.finished(0, "kept")
    assert gang.failed(0, 101.0, died=True, how="died") is None
    gang.finished(1, "too")
    assert gang.results(tail) == ["kept", "too"]


@pytest.mark.parametrize("on_failure", ["end", "report"])
def test_a_time_limit_names_a_rank_that_had_not_finished(on_failure):
    gang = outcomes(size=2, on_failure=on_failure, timeout_s=4)
    assert gang.left_s(101.0) == 3.0
    assert gang.expired(103.9) == ()
    assert gang.expired(104.0) == (0, 1)
    with pytest.raises(GangError, match="rank 0 of 2 had not finished after 4 s"):
        gang.results(tail)


def test_with_reports_the_other_ranks_learn_of_each_failure_once():
    gang = outcomes(on_failure="report")
    assert gang.failed(1, 101.0, died=True, how="died (exit code 7)") == (0, 2)
    assert gang.failed(1, 102.0, died=True, how="died again") is None
    assert gang.left_s(101.0) is None
    gang.finished(0, "zero")
    assert gang.failed(2, 103.0, died=False, how="raised") == (0,)
    assert gang.is_over
    zero, one, two = gang.results(tail)
    assert zero == "zero"
    assert (one.rank, one.how, one.log_tail) == (1, "died (exit code 7)", "log of 1")
    assert (two.rank, two.how) == (2, "raised")
    assert gang.finished_ranks == (0,)


def test_with_reports_the_death_of_a_rank_that_has_finished_is_reported_and_its_result_kept():
    gang = outcomes(size=2, on_failure="report")
    gang.finished(0, "zero")
    assert gang.failed(0, 101.0, died=True, how="died") == (1,)
    gang.finished(1, "one")
    assert gang.results(tail) == ["zero", "one"]
    assert gang.finished_ranks == (1,)


def test_with_reports_only_the_failure_of_all_ranks_is_raised():
    gang = outcomes(size=2, on_failure="report")
    gang.failed(1, 101.0, died=False, how="raised")
    gang.failed(0, 102.0, died=True, how="died")
    assert gang.is_over
    with pytest.raises(GangError, match="rank 0 of 2 died"):
        gang.results(tail)


def test_with_reports_a_time_limit_loses_only_the_late_ranks():
    gang = outcomes(size=2, on_failure="report", timeout_s=4)
    gang.finished(1, "in time")
    gang.expired(104.0)
    late, in_time = gang.results(tail)
    assert in_time == "in time"
    assert late.how == "had not finished after 4 s"


@pytest.mark.parametrize("on_failure", ["end", "report"])
def test_a_gang_that_is_stopped_names_that_unless_a_rank_failed_before(on_failure):
    gang = outcomes(size=2, on_failure=on_failure)
    gang.stopped(101.0)
    assert gang.is_over
    with pytest.raises(GangError, match=r"rank 0 of 2 was ended by stop\(\)"):
        gang.results(tail)
    failed = outcomes(size=2, on_failure=on_failure)
    failed.failed(1, 101.0, died=False, how="raised first")
    failed.stopped(101.1)
    with pytest.raises(GangError, match="rank 1 of 2 raised first"):
        failed.results(tail)


def test_stopping_ranks_that_only_serve_keeps_the_results_of_the_others():
    gang = outcomes(size=2, on_failure="report")
    gang.finished(1, "trained")
    gang.stopped(101.0)
    server, worker = gang.results(tail)
    assert isinstance(server, GangError)
    assert worker == "trained"
