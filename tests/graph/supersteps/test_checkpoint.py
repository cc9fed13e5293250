"""When a checkpoint is due, with a clock that the test controls."""

import math

import pytest

from talka.errors import InvalidValueError
from talka.graph.events import SuperstepDone
from talka.graph.supersteps.checkpoint import Checkpoints

FIRST_COST_S = 0.5  # assumed cost of the first checkpoint
HOUR_S = 3600


class Clock:
    def __init__(self):
        self.now_s = 1_000.0

    def __call__(self):
        return self.now_s


def superstep(sent_bytes=0):
    return SuperstepDone(
        superstep=1, num_active=1, num_messages=1, sent_bytes=sent_bytes, edges=1, pushed=1,
        pulled=0, seconds=0.1,
    )  # fmt: skip


def save(checkpoints, clock, cost_s):
    with checkpoints.timed():
        clock.now_s += cost_s


@pytest.fixture
def clock():
    return Clock()


@pytest.mark.parametrize("cost_s", [0.01, 2.0, 50.0])
def test_the_time_between_checkpoints_follows_from_what_one_costs(clock, cost_s):
    checkpoints = Checkpoints(None, "", now=clock)
    save(checkpoints, clock, cost_s)
    interval_s = math.sqrt(2 * cost_s * HOUR_S)
    clock.now_s += interval_s - 0.001
    assert not checkpoints.is_due()
    clock.now_s += 0.002
    assert checkpoints.is_due()
    save(checkpoints, clock, cost_s)
    assert not checkpoints.is_due()


def test_the_first_one_is_due_by_a_guess_of_its_cost(clock):
    checkpoints = Checkpoints(None, "", now=clock)
    clock.now_s += math.sqrt(2 * FIRST_COST_S * HOUR_S) - 0.001
    assert not checkpoints.is_due()
    clock.now_s += 0.002
    assert checkpoints.is_due()


def test_mails_that_fill_the_memory_make_one_due_at_once(clock):
    checkpoints = Checkpoints(None, "", now=clock)
    for _ in range(4):
        assert not checkpoints.is_due()
        checkpoints.passed(superstep(sent_bytes=2**28))
    assert checkpoints.is_due()
    save(checkpoints, clock, 1.0)
    assert not checkpoints.is_due()


def test_a_number_of_supersteps_counts_from_the_last_one(clock):
    checkpoints = Checkpoints(None, "", every=2, now=clock)
    clock.now_s += 10 * HOUR_S
    assert not checkpoints.is_due()
    checkpoints.passed(superstep())
    assert not checkpoints.is_due()
    checkpoints.passed(superstep())
    assert checkpoints.is_due()
    save(checkpoints, clock, 1.0)
    assert not checkpoints.is_due()


def test_where_none_is_needed_none_is_due(clock):
    checkpoints = Checkpoints(None, "", every=1, is_needed=False, now=clock)
    checkpoints.passed(superstep(sent_bytes=2**40))
    clock.now_s += 10 * HOUR_S
    assert not checkpoints.is_due()


def test_every_zero_supersteps_is_refused():
    with pytest.raises(InvalidValueError, match="checkpoint_every is 0"):
        Checkpoints(None, "", every=0)
