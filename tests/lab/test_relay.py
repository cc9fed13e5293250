"""When frames leave the relay, tested without a clock; and its ring of slots, with datagrams."""

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talka.lab.relay import Frames, Schedule

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
    assert schedule.num_frames == len(due)


@pytest.fixture
def ends():
    """Two ends of a socket for datagrams."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        ours.setblocking(False)
        yield ours, theirs


def test_frames_return_whole_and_in_their_order_however_often_the_ring_wraps(ends):
    ours, theirs = ends
    frames = Frames(theirs.fileno(), 5)
    sent, returned = [bytes([number]) * (1 + 37 * number) for number in range(200)], []
    waiting, held = list(sent), 0
    while len(returned) < len(sent):
        for payload in waiting[: 1 + len(returned) % 4]:
            ours.send(payload)
            waiting.pop(0)
        held += frames.receive()
        num_frames = min(held, 3)
        assert frames.send(num_frames) == 0, "none was dropped"
        held -= num_frames
        returned += [ours.recv(1 << 16) for _ in range(num_frames)]
    assert returned == sent


def test_a_full_ring_receives_nothing(ends):
    ours, theirs = ends
    frames = Frames(theirs.fileno(), 2)
    assert frames.receive() == 0
    for payload in (b"a", b"bc", b"d"):
        ours.send(payload)
    assert frames.receive() == 2
    assert frames.is_full
    assert frames.receive() == 0
    frames.send(1)
    assert frames.receive() == 1
    frames.send(2)
    assert [ours.recv(9) for _ in range(3)] == [b"a", b"bc", b"d"]


def test_a_closed_end_is_an_error(ends):
    ours, theirs = ends
    frames = Frames(theirs.fileno(), 2)
    ours.send(b"a")
    frames.receive()
    ours.close()
    with pytest.raises(OSError, match="sendmmsg"):
        frames.send(1)
