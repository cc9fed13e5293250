"""Decisions to kill, pause, blame and give up, tested without processes, clocks or sleep."""

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talka.errors import InvalidValueError
from talka.lab import Cut, Kill, Pause, PauseHost
from talka.lab.watch import GRACE_S, Blame, CutLink, Send, Watch

KILL, STOP, CONTINUE = signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT
CUT = "cut"


def test_a_quiet_run_needs_nothing():
    watch = Watch(2)
    assert watch.next_s is None
    watch.ended(0, 0, now_s=1)
    watch.ended(1, 0, now_s=2)
    assert watch.advance(2) == []
    assert watch.is_done
    assert watch.blame is None


def test_a_rank_is_killed_at_its_time_and_nobody_is_blamed():
    watch = Watch(3, [Kill(2, 10.0)])
    assert watch.next_s == 10
    assert watch.advance(9.9) == []
    assert watch.advance(10.0) == [Send(2, KILL)]
    watch.ended(2, -KILL, now_s=10.1)
    assert watch.blame is None
    assert watch.next_s is None, "the others have no time limit"


def test_a_rank_that_fails_before_it_would_be_killed_is_blamed():
    watch = Watch(2, [Kill(1, 10.0)])
    watch.ended(1, 3, now_s=1)
    assert watch.blame == Blame(1, 3)
    assert watch.advance(10.0) == []


def test_a_pause_stops_and_continues():
    watch = Watch(2, [Pause(1, 5.0, 3.0)])
    assert watch.advance(5) == [Send(1, STOP)]
    assert watch.next_s == 8
    assert watch.advance(8) == [Send(1, CONTINUE)]


def test_pauses_that_overlap_are_one():
    watch = Watch(1, [Pause(0, 1, 4), Pause(0, 2, 1), Pause(0, 5, 1)])
    sends = {now_s: watch.advance(now_s) for now_s in range(7)}
    assert [now_s for now_s, sent in sends.items() if sent] == [1, 5, 6]
    assert sends[5] == [Send(0, CONTINUE), Send(0, STOP)]


def test_a_host_pauses_again_and_again_with_all_its_ranks():
    watch = Watch(2, [PauseHost(1, 0.5, 10)], ranks_per_host=2)
    sends = {now_s / 2: watch.advance(now_s / 2) for now_s in range(62)}
    stops = [Send(2, STOP), Send(3, STOP)]
    ends = [Send(2, CONTINUE), Send(3, CONTINUE)]
    assert {now_s: sent for now_s, sent in sends.items() if sent} == {
        10: stops, 10.5: ends, 20: stops, 20.5: ends, 30: stops, 30.5: ends,
    }  # fmt: skip
    assert watch.next_s == 40


def test_a_rank_that_has_ended_is_no_longer_paused():
    watch = Watch(1, [PauseHost(0, 1, 10)], ranks_per_host=2)
    watch.ended(0, 0, now_s=3)
    assert watch.advance(10) == [Send(1, STOP)]
    assert watch.advance(11) == [Send(1, CONTINUE)]
    watch.ended(1, 0, now_s=12)
    assert watch.advance(20) == watch.advance(21) == []
    assert watch.next_s is None


def test_a_late_look_catches_up_with_all_pauses():
    watch = Watch(1, [PauseHost(0, 1, 10)])
    assert watch.advance(25) == [Send(0, STOP), Send(0, CONTINUE)] * 2
    assert watch.next_s == 30


def test_a_pause_of_a_rank_inside_one_of_its_host_changes_nothing():
    watch = Watch(1, [PauseHost(0, 5, 10), Pause(0, 12, 1)])
    sends = {now_s: watch.advance(now_s) for now_s in range(20)}
    assert [now_s for now_s, sent in sends.items() if sent] == [10, 15]


def test_a_link_is_cut_once_and_who_was_cut_off_is_not_blamed():
    watch = Watch(2, [Cut(1, 30)], ranks_per_host=2)
    assert watch.next_s == 30
    assert watch.advance(29) == []
    assert watch.advance(30) == [CutLink(1)]
    assert watch.advance(100) == []
    watch.ended(3, 1, now_s=101)
    assert watch.blame is None
    watch.ended(1, 1, now_s=102)
    assert watch.blame == Blame(1, 1), "its own link was there"
    assert watch.next_s is None, "the others may continue"


def test_a_rank_that_fails_before_its_link_is_cut_is_blamed():
    watch = Watch(2, [Cut(1, 30)])
    watch.ended(1, 1, now_s=3)
    assert watch.blame == Blame(1, 1)


def test_after_a_failure_the_others_have_a_grace():
    watch = Watch(3)
    watch.ended(1, 3, now_s=2)
    watch.ended(2, 1, now_s=2.5)
    assert watch.blame == Blame(1, 3), "the first one, not its echo"
    assert watch.next_s == 2 + GRACE_S
    assert watch.advance(2 + GRACE_S) == [Send(0, KILL)]
    assert watch.next_s is None
    watch.ended(0, -KILL, now_s=13)
    assert watch.is_done
    assert watch.blame == Blame(1, 3)


def test_with_kills_a_failure_does_not_end_the_others():
    watch = Watch(3, [Kill(2, 1)])
    watch.advance(1)
    watch.ended(2, -KILL, now_s=1)
    watch.ended(1, 1, now_s=2)
    assert watch.next_s is None
    assert watch.blame == Blame(1, 1)


def test_who_is_too_late_is_killed_and_blamed():
    watch = Watch(3, timeout_s=60)
    watch.ended(0, 0, now_s=5)
    assert watch.advance(60) == [Send(1, KILL), Send(2, KILL)]
    assert watch.blame == Blame(1, None)
    watch.ended(1, -KILL, now_s=60)
    watch.ended(2, -KILL, now_s=60)
    assert watch.is_done


@pytest.mark.parametrize("trouble", [Kill(2, 1.0), Kill(-1, 1.0), Pause(5, 1.0, 1.0)])
def test_a_rank_that_does_not_exist_is_refused(trouble):
    with pytest.raises(InvalidValueError, match="a rank from 0 to 1"):
        Watch(2, [trouble])


@pytest.mark.parametrize("trouble", [Cut(2, 1.0), PauseHost(-1, 1.0, 2.0)])
def test_a_host_that_does_not_exist_is_refused(trouble):
    with pytest.raises(InvalidValueError, match="a host from 0 to 1"):
        Watch(2, [trouble], ranks_per_host=3)


@pytest.mark.parametrize(
    "for_s, every_s", [(0, 1), (1, 1), (2, 1), (0.001, 0.01), (1, float("nan"))]
)
def test_a_pause_that_never_ends_or_comes_too_often_is_refused(for_s, every_s):
    with pytest.raises(InvalidValueError, match="pause is "):
        PauseHost(0, for_s, every_s)


TIMES = st.integers(0, 30)
RANKS = st.integers(0, 3)
TROUBLES = st.lists(
    st.builds(Kill, RANKS, TIMES)
    | st.builds(Pause, RANKS, TIMES, st.integers(0, 9))
    | st.builds(PauseHost, RANKS, st.integers(1, 3), st.integers(4, 20))
    | st.builds(Cut, RANKS, TIMES),
    max_size=6,
)
ENDS = st.lists(st.tuples(TIMES, st.sampled_from([0, 0, 1, -11])), min_size=4, max_size=4)


def played(troubles, ends, timeout_s, ticks):
    """Play a run of four ranks; who is killed ends at once. Gives the watch and what it sent."""
    watch = Watch(4, troubles, timeout_s=timeout_s)
    sent = []
    for now_s in ticks:
        for rank, (end_s, code) in enumerate(ends):
            if end_s <= now_s and rank not in watch.exit_codes:
                watch.ended(rank, code, now_s=now_s)
        for send in watch.advance(now_s):
            if isinstance(send, CutLink):
                sent.append((now_s, send.host, CUT))
                continue
            assert send.rank not in watch.exit_codes, "a signal to a rank that is gone"
            sent.append((now_s, *send))
            if send.signal == KILL:
                watch.ended(send.rank, -KILL, now_s=now_s)
        assert watch.next_s is None or watch.next_s > now_s, "nothing is due that was not done"
    return watch, sent


@given(TROUBLES, ENDS, st.none() | st.integers(1, 40))
def test_every_run_comes_to_an_end_with_few_and_fitting_signals(troubles, ends, timeout_s):
    watch, sent = played(troubles, ends, timeout_s, range(60))
    assert watch.is_done
    for rank in range(4):
        signals = [signum for _, to, signum in sent if to == rank and signum != CUT]
        pauses = [signum for signum in signals if signum != KILL]
        assert pauses == [STOP, CONTINUE] * (len(pauses) // 2) + [STOP] * (len(pauses) % 2)
        assert signals.count(KILL) <= 1
        assert KILL not in signals[:-1]


@given(TROUBLES, ENDS)
def test_the_first_failure_that_nobody_ordered_is_blamed(troubles, ends):
    watch, sent = played(troubles, ends, None, range(60))
    killed = {to for _, to, signum in sent if signum == KILL}
    cut_s = {to: now_s for now_s, to, signum in reversed(sent) if signum == CUT}
    failed = [
        (end_s, rank, code)
        for rank, (end_s, code) in enumerate(ends)
        if code != 0 and rank not in killed and end_s <= cut_s.get(rank, end_s)
    ]
    assert watch.blame == (Blame(*min(failed)[1:]) if failed else None)


@given(TROUBLES, ENDS, st.lists(st.integers(0, 119), max_size=20))
def test_looking_more_often_changes_nothing(troubles, ends, extra):
    _, sent = played(troubles, ends, 35, range(60))
    ticks = sorted({*range(60), *(half / 2 for half in extra)})
    assert played(troubles, ends, 35, ticks)[1] == sent
