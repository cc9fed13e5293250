"""Timelines by hand, against a twin that moves in ticks, and against the cost of one round."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talka.errors import InvalidValueError
from talka.network import Link, Network, gather, scatter
from talka.network.timeline import Compute, ReceiveFrom, SendTo, Together, timeline
from tests.network.timeline_twin import slots_of

PAIR = Network.equal(Link(1, 8), 2)  # one byte per second


def test_nothing_overlaps_in_the_simplest_case():
    found = timeline(PAIR, [[Compute(5), Together(2)], [Compute(3), Together(2)]])
    assert found.total_s == 5 + 2
    assert found.idle_s == (0, 2)
    assert found.slots[1] == ((0, 3), (5, 7))


def test_computing_continues_while_messages_leave_in_order():
    sender = [Compute(1), SendTo(1, 4), SendTo(1, 2), Compute(10)]
    found = timeline(PAIR, [sender, [ReceiveFrom(0), Compute(1), ReceiveFrom(0)]])
    assert found.slots[0] == ((0, 1), (1, 6), (5, 8), (1, 11))
    assert found.slots[1] == ((0, 6), (6, 7), (7, 8))
    assert found.total_s == 11
    assert found.idle_s == (0, 10)


def test_a_pipeline_of_two_stages_has_its_bubble():
    """One byte per micro-batch and second: stage 1 starts 2 + 1 + 1 seconds late."""
    first = [action for _ in range(4) for action in (Compute(2), SendTo(1, 1))]
    second = [action for _ in range(4) for action in (ReceiveFrom(0), Compute(2))]
    found = timeline(PAIR, [first, second])
    assert found.total_s == 4 + 4 * 2
    assert found.idle_s == (4, 4)


def test_workers_of_a_host_share_its_port_but_not_their_inner_ports():
    network = Network((Link(0, 8), Link(0, 8)), workers_per_host=(2, 2), inner=Link(0, 80))
    out = timeline(network, [[SendTo(2, 5)], [SendTo(3, 5)], [ReceiveFrom(0)], [ReceiveFrom(1)]])
    assert out.total_s == 10
    inside = timeline(network, [[SendTo(1, 5)], [ReceiveFrom(0)], [SendTo(3, 5)], [ReceiveFrom(2)]])
    assert inside.total_s == 0.5


@given(st.integers(2, 6), st.floats(0, 1e6), st.booleans())
def test_one_round_from_or_to_one_worker_takes_what_the_cost_model_says(size, num_bytes, is_gather):
    network = Network.equal(Link(0.5, 1e6), size)
    others = range(1, size)
    if is_gather:
        root, rest = [ReceiveFrom(rank) for rank in others], [SendTo(0, num_bytes)]
        expected = gather(network, num_bytes)
    else:
        root, rest = [SendTo(rank, num_bytes) for rank in others], [ReceiveFrom(0)]
        expected = scatter(network, size * num_bytes)
    assert timeline(network, [root, *[rest] * (size - 1)]).total_s == pytest.approx(
        expected.seconds
    )


@st.composite
def schedules(draw):
    """Draw a network in whole seconds, and actions that may or may not wait forever."""
    counts = draw(st.lists(st.integers(1, 2), min_size=1, max_size=3))
    links = [
        Link(draw(st.integers(0, 2)), *draw(st.tuples(*[st.sampled_from([8, 4, 2])] * 2)))
        for _ in counts
    ]
    network = Network(tuple(links), tuple(counts), Link(draw(st.integers(0, 1)), 8))
    size = network.num_workers
    actions = [[] for _ in range(size)]
    for _ in range(draw(st.integers(0, 12))):
        worker = draw(st.integers(0, size - 1))
        kind = draw(st.sampled_from(["compute", "message", "message", "together", "lost"]))
        other = draw(st.integers(0, size - 1))
        if kind == "compute" or (kind != "together" and other == worker):
            actions[worker].append(Compute(draw(st.integers(0, 3))))
        elif kind == "message":
            actions[worker].append(SendTo(other, draw(st.integers(0, 3))))
            actions[other].append(ReceiveFrom(worker))
        elif kind == "together":
            seconds = draw(st.integers(0, 3))
            for todo in actions:
                todo.append(Together(seconds))
        elif draw(st.integers(0, 4)) == 0:
            actions[other].append(ReceiveFrom(worker))
    return network, actions


@given(schedules())
def test_the_timeline_is_that_of_the_ticks(schedule):
    network, actions = schedule
    ticks = slots_of(network, actions, num_ticks=250)
    if len(ticks) < sum(map(len, actions)):
        with pytest.raises(InvalidValueError, match="each wait ends"):
            timeline(network, actions)
        return
    found = timeline(network, actions)
    for worker, slots in enumerate(found.slots):
        assert slots == tuple(ticks[worker, index] for index in range(len(slots)))
        busy = [
            slot.end_s - slot.start_s
            for slot, action in zip(slots, actions[worker], strict=True)
            if isinstance(action, Compute | Together)
        ]
        assert found.idle_s[worker] == found.total_s - sum(busy)
    assert found.total_s == max((slot.end_s for slot in ticks.values()), default=0)


@pytest.mark.parametrize(
    "action",
    [
        SendTo(0, 1),
        SendTo(2, 1),
        SendTo(1, -1),
        ReceiveFrom(0),
        Compute(float("nan")),
        Together(-1),
    ],
)
def test_actions_that_cannot_be_are_refused(action):
    with pytest.raises(InvalidValueError, match="actions of worker 0"):
        timeline(PAIR, [[action], []])
    with pytest.raises(InvalidValueError, match="number of lists"):
        timeline(PAIR, [[]])


def test_different_collectives_do_not_meet():
    with pytest.raises(InvalidValueError, match="Together"):
        timeline(PAIR, [[Together(1)], [Together(2)]])
