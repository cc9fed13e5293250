"""The table of a rendezvous, and what keys and values may be."""

import threading

import pytest

from talka.channels.rendezvous import check_key, check_value
from talka.engine.gangs.keys import Answer, KeyTable, MemoryRendezvous
from talka.errors import InvalidValueError, RendezvousTimeoutError


def test_a_key_that_is_set_is_answered_at_once():
    table = KeyTable()
    assert table.set(0, 7, "a", b"1") == [Answer(0, 7)]
    assert table.get(1, 8, "a") == [Answer(1, 8, b"1")]
    assert table.set(1, 9, "a", b"2") == [Answer(1, 9)]
    assert table.get(1, 10, "a") == [Answer(1, 10, b"2")]


def test_all_calls_that_wait_are_answered_when_the_key_is_set():
    table = KeyTable()
    assert table.get(2, 1, "a") == table.get(1, 1, "a") == table.get(1, 2, "a") == []
    assert table.get(1, 3, "b") == []
    assert table.set(0, 0, "a", b"x") == [
        Answer(0, 0),
        Answer(1, 1, b"x"),
        Answer(1, 2, b"x"),
        Answer(2, 1, b"x"),
    ]
    assert table.num_waiting == 1


def test_calls_that_gave_up_and_ranks_that_ended_are_forgotten():
    table = KeyTable()
    for call in range(100):
        table.get(1, call, "a")
        table.forget(1, call, "a")
    table.forget(1, 5, "never asked")
    assert table.num_waiting == 0
    table.get(1, 200, "a")
    table.get(2, 200, "a")
    table.forget_rank(1)
    assert table.set(0, 0, "a", b"x") == [Answer(0, 0), Answer(2, 200, b"x")]


def test_the_number_of_keys_is_limited():
    table = KeyTable(max_keys=2)
    for key in "ab":
        table.set(0, 0, key, b"")
    [refused] = table.set(0, 1, "c", b"")
    assert refused.refusal.startswith("at most 2 keys with")
    assert table.set(0, 2, "a", b"new") == [Answer(0, 2)]


def test_the_bytes_of_all_values_are_limited():
    table = KeyTable(max_bytes=10)
    assert table.set(0, 0, "a", bytes(6)) == [Answer(0, 0)]
    [refused] = table.set(0, 1, "b", bytes(5))
    assert "10 bytes in all: send data through channels" in refused.refusal
    assert table.set(0, 2, "a", bytes(10)) == [Answer(0, 2)]  # replaces the former value


@pytest.mark.parametrize("key", ["", "x" * 513, "é" * 257, 5, None])
def test_keys_are_bounded(key):
    with pytest.raises(InvalidValueError, match="must be a text of 1 to 512 bytes"):
        check_key(key)


def test_values_are_bounded_bytes():
    check_value("k", bytes(1 << 20))
    with pytest.raises(InvalidValueError, match="'1048577 bytes', but must be at most 1048576"):
        check_value("k", bytes((1 << 20) + 1))
    with pytest.raises(InvalidValueError, match="the value of the key 'k' is 'str'"):
        check_value("k", "text")


def test_a_rendezvous_of_threads_waits_and_names_the_key_that_is_never_set():
    shared, found = MemoryRendezvous(), []
    thread = threading.Thread(target=lambda: found.append(shared.get("a")))
    thread.start()
    shared.set("a", b"1")
    thread.join(60)
    assert found == [b"1"]
    with pytest.raises(RendezvousTimeoutError, match=r"the key 'b' .* within 0.01 s"):
        shared.get("b", timeout_s=0.01)
