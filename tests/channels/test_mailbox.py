"""Sends and receives of mailboxes: order, limits, waiting, closing. On sockets, memory and TCP."""

import random
import threading
import time

import numpy as np
import pytest

from talka.channels import Group, reading
from talka.errors import (
    ChannelClosedError,
    ChannelTimeoutError,
    InvalidValueError,
    LostWorkerError,
)
from tests.channels.ranks import far_apart, groups, mailboxes, outcome, run, soon

LONG = 3_000_000


@pytest.fixture(params=["near", "far"])
def path(request, monkeypatch):
    """Ranks on one machine, whose long messages go through memory; or on several, by TCP."""
    if request.param == "far":
        far_apart(monkeypatch)
    return request.param


def test_messages_of_one_rank_and_tag_stay_in_order(path):
    with groups(2) as (first, second):
        sizes = [1, LONG, 3, 100_000, 0, 70_000]
        for number, size in enumerate(sizes):
            first.send(np.full(size, number), to=1, tag=number % 2)
        for tag in (1, 0):
            for number in range(tag, len(sizes), 2):
                array = second.receive(source=0, tag=tag, timeout_s=10)
                assert array.size == sizes[number]
                assert np.all(array == number)


def test_messages_come_from_any_rank(path):
    with groups(3) as members:
        members[1].send("one", to=0)
        members[2].send("two", to=0, tag="other")
        assert members[0].receive_from_any(timeout_s=10) == (1, "one")
        assert members[0].receive_from_any(tag="other", timeout_s=10) == (2, "two")
        members[0].send("self", to=0)
        assert members[0].receive_from_any(timeout_s=10) == (0, "self")


def test_a_send_waits_for_room_and_continues(path):
    with groups(2, buffer_bytes=1 << 20) as (first, second):
        array = np.zeros(1 << 18, np.uint8)
        start = threading.Event()

        def send_all(group):
            for number in range(60):
                array[:] = number
                group.send(array, to=1, timeout_s=20)
                if number == 2:
                    start.set()

        def receive_all(group):
            assert start.wait(10)  # the first ones need nobody
            return [int(group.receive(source=0, timeout_s=20)[-1]) for _ in range(60)]

        calls = {0: send_all, 1: receive_all}
        assert run(lambda g: calls[g.rank](g), [first, second])[1] == list(range(60))


def test_a_send_that_nobody_receives_ends_in_time(path):
    with groups(2, buffer_bytes=1 << 20) as (first, second):
        with pytest.raises(ChannelTimeoutError, match="send to rank 1"):  # noqa: PT012
            for _ in range(100):
                first.send(np.zeros(1 << 18), to=1, timeout_s=0.1)
        second.close()
        Group(second.mailbox)  # continues with other messages


def test_a_long_send_that_is_given_up_leaves_no_trace():
    with groups(2, buffer_bytes=1 << 20) as (first, second):
        with pytest.raises(ChannelTimeoutError):
            first.send(np.zeros(8 << 20, np.uint8), to=1, timeout_s=0.1)
        calls = {
            0: lambda: first.send(np.full(200_000, 5), to=1, timeout_s=10),
            1: lambda: second.receive(source=0, timeout_s=10),
        }
        assert np.all(run(lambda g: calls[g.rank](), [first, second])[1] == 5)


def test_a_closed_group_gives_its_senders_their_room_back():
    with mailboxes(2, buffer_bytes=1 << 20) as boxes:
        old = [Group(box, name="old") for box in boxes]
        new = [Group(box, name="new") for box in boxes]
        old[0].send(np.zeros(1_000_000, np.uint8), to=1)
        new[0].send("after it", to=1)
        assert new[1].receive(source=0, timeout_s=10) == "after it"
        old[1].close()
        new[0].send(np.ones(1 << 20, np.uint8), to=1, timeout_s=10)
        assert new[1].receive(source=0, timeout_s=10).all()


def test_a_sender_may_change_its_array(path):
    with groups(2) as (first, second):
        for size in (10, 100_000, LONG):
            array = np.arange(size)
            first.send(array, to=1)
            array[:] = -1
            np.testing.assert_array_equal(second.receive(timeout_s=10), np.arange(size))


def test_a_message_beyond_the_limit_is_refused_at_once(path):
    with groups(2, max_message_bytes=1000) as (first, second):
        with pytest.raises(InvalidValueError, match="max_message_bytes"):
            first.send(np.zeros(1001, np.uint8), to=1)
        first.send(np.zeros(1000, np.uint8), to=1)
        assert second.receive(timeout_s=10).size == 1000


def test_a_full_inbox_stops_reading_and_continues(path):
    with groups(2, inbox_bytes=100_000, buffer_bytes=1 << 30) as (first, second):
        for number in range(300):
            first.send(np.full(5000, number, np.uint16), to=1, tag=number)
        with pytest.raises(ChannelTimeoutError):
            second.receive(source=1, tag="never", timeout_s=0.05)
        inbox = second.mailbox._delivery.matching
        assert inbox.inbox_bytes <= 110_000
        for number in reversed(range(300)):
            assert second.receive(source=0, tag=number, timeout_s=10)[7] == number
        assert inbox.inbox_bytes == 0


def test_a_buffer_that_does_not_fit_is_an_error_and_later_messages_arrive(path):
    with groups(2) as (first, second):
        for size in (100, LONG):
            for room in (size - 1, size + 1):
                first.send(np.ones(size, np.uint8), to=1)
                first.send("next", to=1)
                with pytest.raises(ValueError, match="arrived from rank 0 for a buffer"):
                    second.receive(source=0, out=np.zeros(room, np.uint8), timeout_s=10)
                assert second.receive(source=0, timeout_s=10) == "next"
        with pytest.raises(InvalidValueError, match="out"):
            second.receive(source=0, out=np.zeros(20)[::2])


def test_a_receive_into_out_fills_it(path):
    with groups(2) as (first, second):
        for size in (3, LONG):
            first.send(np.arange(size), to=1)
            out = np.zeros(size, int)
            assert second.receive(source=0, out=out, timeout_s=10) is out
            np.testing.assert_array_equal(out, np.arange(size))


def test_many_threads_send_and_receive(path):
    num_ranks, num_threads, num_messages = 3, 4, 200
    sizes = (0, 10, 1000, 70_000, 400_000)

    def work(part):
        group, thread = part
        chance = random.Random(thread)
        for number in range(num_messages):
            size = chance.choice(sizes) if number % 10 == 0 else chance.choice(sizes[:3])
            to, source = (group.rank + 1) % num_ranks, (group.rank - 1) % num_ranks
            body = np.full(size, (number * 7 + group.rank) % 251, np.uint8)
            group.send(body, to=to, tag=thread)
            got = group.receive(source=source, tag=thread, timeout_s=20)
            assert got.size == size
            assert np.all(got == (number * 7 + source) % 251)

    with groups(num_ranks) as members:
        run(work, [(group, thread) for group in members for thread in range(num_threads)])


def test_collectives_and_long_sends_share_a_link():
    """Parts of a long message and other messages of the same rank come in any order."""
    with mailboxes(2) as boxes:
        sums = [Group(box) for box in boxes]
        others = [Group(box) for box in boxes]

        def reduce_all(rank):
            for _ in range(60):
                assert sums[rank].all_reduce(np.ones(50_000), algorithm="direct")[-1] == 2

        def send_all(rank):
            for number in range(15):
                others[rank].send(np.full(LONG // 4, number), to=1 - rank)
                assert others[rank].receive(source=1 - rank, timeout_s=20)[-1] == number

        run(lambda call: call[0](call[1]), [(c, r) for c in (reduce_all, send_all) for r in (0, 1)])


def test_closing_ends_those_who_wait():
    with mailboxes(2) as boxes:
        errors = []
        waiting = [
            threading.Thread(
                target=lambda tag=tag: errors.append(
                    outcome(lambda: Group(boxes[0]).receive(source=1, tag=tag))
                )
            )
            for tag in range(3)
        ]
        for thread in waiting:
            thread.start()
        soon(lambda: len(boxes[0]._delivery.matching._receives) == 3)
        boxes[0].close()
        for thread in waiting:
            thread.join(10)
        assert [type(error) for error in errors] == [ChannelClosedError] * 3


def test_a_closed_mailbox_is_not_used():
    with groups(2) as (first, second):
        first.send(1, to=1)
        first.mailbox.close()
        first.mailbox.close()
        for call in (lambda: first.send(1, to=1), lambda: first.receive(source=1)):
            with pytest.raises(ChannelClosedError):
                call()
        assert second.receive(source=0, timeout_s=10) == 1


def test_a_rank_that_says_goodbye_is_lost_after_its_last_message(path):
    with groups(2) as (first, second):
        first.send("last words", to=1)
        first.mailbox.close()
        assert second.receive(source=0, timeout_s=10) == "last words"
        with pytest.raises(LostWorkerError, match="rank 0"):
            second.receive(source=0, timeout_s=10)
        with pytest.raises(LostWorkerError):
            second.receive_from_any(timeout_s=10)  # there is no other
        with pytest.raises(LostWorkerError):  # noqa: PT012
            for _ in range(100):
                second.send(1, to=0)


def test_a_rank_that_computes_is_not_silent():
    with groups(2, silence_s=0.2) as (first, second):
        second.send("early", to=0)
        assert first.receive(source=1, timeout_s=10) == "early"
        time.sleep(0.5)  # nothing is read meanwhile
        timer = threading.Timer(0.4, lambda: second.send("late", to=0))
        timer.start()
        assert first.receive(source=1, timeout_s=10) == "late"
        timer.join()


@pytest.mark.parametrize("tag", [-1, 1 << 62])
def test_tags_and_ranks_beyond_their_range_are_refused(tag):
    with groups(2) as (first, _):
        with pytest.raises(InvalidValueError):
            first.send(1, to=1, tag=tag)
        for rank in (-1, 2):
            with pytest.raises(InvalidValueError):
                first.send(1, to=rank)
            with pytest.raises(InvalidValueError):
                first.receive(source=rank)


@pytest.mark.parametrize("size", [10, 100_000, LONG])
def test_a_send_without_a_copy_waits_until_its_memory_is_free(path, size):
    with groups(2) as (first, second):
        array = np.full(size, 7, np.uint8)

        def send():
            first.send(array, to=1, copy=False)
            array[:] = 8

        sender = threading.Thread(target=send)
        sender.start()
        received = second.receive(source=0, timeout_s=10)
        sender.join(10)
        assert not sender.is_alive()
        assert np.all(received == 7)
        with pytest.raises(InvalidValueError, match="timeout_s"):
            first.send(array, to=1, copy=False, timeout_s=1)


@pytest.mark.parametrize("num_cores, polls", [(1, False), (2, True)])
def test_only_ranks_with_a_core_each_poll_before_they_sleep(monkeypatch, num_cores, polls):
    monkeypatch.setattr(reading, "num_cores", lambda: num_cores)
    with mailboxes(2) as boxes:
        group = Group(boxes[0]), Group(boxes[1])
        run(lambda g: g.barrier(), group)
        assert boxes[0]._reading._polls is polls


def test_ranks_of_other_machines_do_not_poll(monkeypatch):
    far_apart(monkeypatch)
    monkeypatch.setattr(reading, "num_cores", lambda: 8)
    with groups(2) as members:
        run(lambda g: g.barrier(), members)
        assert not members[0].mailbox._reading._polls
