"""When frames leave the relay, tested without sockets and without a clock."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talka.lab.relay import Schedule

LATENCIES = st.floats(1e-4, 2.0)


def test_a_frame_after_silence_waits_for_the_latency():
    schedule = Schedule(0.02)
    assert schedule.wait_s(5.0) is None
    schedule.received(1, now_s=5.0, slept_s=0.0)
    assert schedule.wait_s(5.005) == pytest.approx(0.015)
    assert schedule.take_due(5.019) == 0
    assert schedule.take_due(5.02) == 1
    assert schedule.wait_s(5.02) is None


def test_frames_that_arrived_during_a_sleep_count_from_its_middle():
    schedule = Schedule(0.02)
    schedule.received(3, now_s=5.0, slept_s=0.0004)
    assert schedule.wait_s(5.0) == pytest.approx(0.0198)


@given(LATENCIES)
def test_a_tick_is_short(latency_s):
    assert 0 < Schedule(latency_s).tick_s <= max(0.025 * latency_s, 50e-6)


@given(LATENCIES, st.lists(st.tuples(st.integers(1, 9), st.floats(0, 0.99)), max_size=50))
def test_every_frame_leaves_within_a_tick_of_its_time(latency_s, arrivals):
    """The relay wakes once per tick: `arrivals` are the frames per tick, and when in it they came."""
    schedule = Schedule(latency_s)
    tick_s, due = schedule.tick_s, []
    for tick in range(len(arrivals) + 100):
        now_s = (tick + 1) * tick_s
        if tick < len(arrivals):
            count, when = arrivals[tick]
            schedule.received(count, now_s=now_s, slept_s=tick_s)
            due += [(tick + when) * tick_s + latency_s] * count
        for _ in range(schedule.take_due(now_s)):
            assert due.pop(0) == pytest.approx(now_s, abs=1.01 * tick_s)
    assert schedule.take_due(float("inf")) == len(due)
