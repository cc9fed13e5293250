"""The buffer between a rank and its driver, without Ray."""

import threading

import pytest

from talka.engine.gangs import relay as relay_module
from talka.engine.gangs.relay import Relay
from talka.events import Measured, Noted, Stream
from talka.events.parsing import parsed


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(relay_module, "EVERY_S", 0.01)


def sent_by(relay, batches, lines):
    for line in lines:
        relay.add(line)
    relay.close()
    return b"".join(batches).splitlines(keepends=True)


def test_every_line_arrives_once_and_in_order(monkeypatch):
    monkeypatch.setattr(relay_module, "BATCH_BYTES", 50)
    batches = []
    lines = [b"line %d\n" % number for number in range(1000)]
    relay = Relay(lambda batch: batches.append(batch) or True)
    assert sent_by(relay, batches, lines) == lines
    assert all(len(batch) < 50 + len(lines[-1]) and batch.endswith(b"\n") for batch in batches)


def test_a_batch_that_has_no_room_is_sent_again():
    batches, answers = [], iter([False, False, True])

    def send(batch):
        if not next(answers, True):
            return False
        batches.append(batch)
        return True

    lines = [b"a\n", b"b\n"]
    assert sent_by(Relay(send), batches, lines) == lines


def test_a_full_buffer_loses_lines_and_says_how_many(monkeypatch):
    monkeypatch.setattr(relay_module, "MAX_BUFFER_BYTES", 100)
    monkeypatch.setattr(relay_module, "BATCH_BYTES", 1)
    batches, is_sending, may_go_on = [], threading.Event(), threading.Event()

    def send(batch):
        batches.append(batch)
        is_sending.set()
        return may_go_on.wait(60)

    relay = Relay(send)
    relay.add(b"first\n")
    assert is_sending.wait(60)
    for _ in range(30):
        relay.add(b"x" * 9 + b"\n")
    may_go_on.set()
    *lines, last = sent_by(relay, batches, [])
    events = [parsed(line, "rank-0") for line in (*lines, last)]
    notes = [content.event for content in events if content != "damaged"]
    assert lines.count(b"x" * 9 + b"\n") + (last == b"x" * 9 + b"\n") == 10
    assert notes == [
        Noted("events", "20 events were lost, as the driver did not receive them in time")
    ]


def test_a_driver_that_is_gone_does_not_stop_the_rank(caplog):
    def send(batch):
        raise ConnectionError("gone")

    relay = Relay(send)
    relay.add(b"a\n")
    relay.close()
    assert "events cannot be sent to the driver: ConnectionError('gone')" in caplog.text


def test_a_stream_without_a_file_passes_its_lines_on():
    lines, heard = [], []
    stream = Stream(lines_to=lines.append)
    with stream.listening(heard.append):
        stream.emit(Measured("a", 1.0, 2.0))
    assert [parsed(line, "rank-0").event for line in lines] == heard == [Measured("a", 1.0, 2.0)]
