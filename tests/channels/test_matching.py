"""Matching against a slow, obvious twin: lists that are searched from the front."""

import random

from hypothesis import given
from hypothesis import strategies as st

from talka.channels.matching import Arrival, Matching
from talka.channels.operations import ReceiveOperation, new_buffer

SOURCES, TAGS, CONTEXTS = (0, 1, 2), (5, 6), (8, 9)


class Twin:
    """All receives and all messages in one list each, in the order of their calls."""

    def __init__(self):
        self.receives, self.arrivals = [], []

    def post(self, receive):
        for arrival in self.arrivals:
            if fits(receive, arrival):
                self.arrivals.remove(arrival)
                return arrival
        self.receives.append(receive)
        return None

    def arrive(self, arrival):
        for receive in self.receives:
            if fits(receive, arrival):
                self.receives.remove(receive)
                return receive
        self.arrivals.append(arrival)
        return None


def key_of(arrival):
    return tuple(arrival.description)


def fits(receive, arrival):
    is_source = receive.peer is None or receive.peer == arrival.source
    return is_source and (receive.context, receive.tag) == key_of(arrival)


def arrival_of(chance):
    context, tag = chance.choice(CONTEXTS), chance.choice(TAGS)
    arrival = Arrival(chance.choice(SOURCES), bytes([context, tag]), chance.randrange(9))
    arrival.is_remote = chance.random() < 0.3
    if not arrival.is_remote:
        arrival.data = new_buffer(arrival.num_bytes)
    if chance.random() < 0.6:
        arrival.num_read = arrival.num_bytes
    return arrival


def receive_of(chance):
    source = chance.choice((*SOURCES, None))
    return ReceiveOperation(None, source, chance.choice(CONTEXTS), chance.choice(TAGS), None)


def kept(matching):
    return [arrival for waiting in matching._arrivals.values() for arrival in waiting]


def waiting(matching):
    return [receive for receives in matching._receives.values() for receive in receives]


def step(matching, twin, chance):
    way = chance.randrange(20)
    if way < 9:
        receive = receive_of(chance)
        assert matching.post(receive) is twin.post(receive)
    elif way < 17:
        arrival = arrival_of(chance)
        receive = matching.arrived(key_of(arrival), arrival.source)
        assert receive is twin.arrive(arrival)
        if receive is None:
            matching.keep(key_of(arrival), arrival)
    elif way == 17:
        receive = chance.choice(twin.receives or [receive_of(chance)])
        matching.withdraw(receive)
        twin.receives = [other for other in twin.receives if other is not receive]
    elif way == 18:
        source, is_last = chance.choice(SOURCES), chance.random() < 0.3
        matching.discard_incomplete(source)
        twin.arrivals = [a for a in twin.arrivals if a.source != source or a.is_complete]
        gone = [r for r in twin.receives if r.peer == source or (is_last and r.peer is None)]
        assert set(matching.lost(source, is_last=is_last)) == set(gone)
        twin.receives = [receive for receive in twin.receives if receive not in gone]
    else:
        context = chance.choice(CONTEXTS)
        matching.forget(context)
        twin.receives = [receive for receive in twin.receives if receive.context != context]
        twin.arrivals = [a for a in twin.arrivals if key_of(a)[0] != context]


@given(st.integers(0, 2**32))
def test_matching_does_what_its_twin_does(seed):
    chance, matching, twin = random.Random(seed), Matching(), Twin()
    for _ in range(100):
        step(matching, twin, chance)
        assert set(kept(matching)) == set(twin.arrivals)
        assert set(waiting(matching)) == set(twin.receives)
        held = sum(a.num_bytes for a in twin.arrivals if a.data is not None)
        assert matching.inbox_bytes == held
        for source in SOURCES:
            is_awaited = any(receive.peer in (None, source) for receive in twin.receives)
            assert matching.awaits(source) == is_awaited


def test_nothing_stays_in_memory_when_all_is_matched():
    matching, chance = Matching(), random.Random(1)
    arrivals = [arrival_of(chance) for _ in range(50)]
    for arrival in arrivals:
        matching.keep(key_of(arrival), arrival)
    for arrival in arrivals:
        context, tag = key_of(arrival)
        assert matching.post(ReceiveOperation(None, arrival.source, context, tag, None)) is arrival
    assert matching.inbox_bytes == 0
    assert not matching._arrivals
    assert not matching._receives
