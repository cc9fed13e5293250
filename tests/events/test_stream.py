import asyncio
import dataclasses
import errno
import json
import math
import os
import tempfile
import threading
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.errors import RunDirectoryError
from talka.events import (
    Event,
    Measured,
    PhaseAdvanced,
    PhaseEnded,
    PhaseStarted,
    Predicted,
    RunStarted,
    Stream,
    read_run,
    registered,
)
from talka.events.fields import MAX_FLOAT, MAX_INT


def values_of(hint):
    """Generate all values of the type of a field that JSON can represent."""
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    return st.from_type(hint).filter(can_be_computed_with)


def can_be_computed_with(value):
    if isinstance(value, float):
        return abs(value) <= MAX_FLOAT
    return not isinstance(value, int) or abs(value) <= MAX_INT


def events_of(kind):
    hints = get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]
    return st.builds(kind, **{name: values_of(hints[name]) for name in names})


@settings(deadline=None)
@given(st.lists(st.sampled_from(list(registered().values())).flatmap(events_of)))
def test_every_event_comes_back_from_its_file(events):
    with tempfile.TemporaryDirectory() as folder:
        stream = Stream(Path(folder) / "events.jsonl")
        for event in events:
            stream.emit(event)
        stream.close()
        record = read_run(Path(folder))
    assert [stamped.event for stamped in record.events] == events
    assert record.num_unreadable_lines == 0


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_floats_that_json_lacks_become_null(tmp_path, value):
    emit_to(tmp_path, [Predicted("step", value, value, "")])
    line = (tmp_path / "events.jsonl").read_text()
    fields = json.loads(line, parse_constant=pytest.fail)
    assert (fields["sent_bytes"], fields["seconds"]) == (None, None)


def test_half_a_surrogate_pair_does_not_stop_the_job(tmp_path):
    emit_to(tmp_path, [RunStarted("a\ud800b")])
    assert read_run(tmp_path).events[0].event == RunStarted("a?b")


def test_every_line_is_in_the_file_before_the_stream_is_closed(tmp_path):
    stream = Stream(tmp_path / "events.jsonl")
    stream.emit(RunStarted("a"))
    assert len((tmp_path / "events.jsonl").read_bytes().splitlines()) == 1
    stream.close()


def test_threads_do_not_mix_their_lines(tmp_path):
    stream = Stream(tmp_path / "events.jsonl")
    long_name = "x" * 5000

    def emit_many():
        for _ in range(50):
            stream.emit(RunStarted(long_name))

    threads = [threading.Thread(target=emit_many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stream.close()
    record = read_run(tmp_path)
    assert (len(record.events), record.num_unreadable_lines) == (200, 0)


def test_a_listener_receives_events_only_inside_its_block():
    stream = Stream()
    heard: list[Event] = []
    with stream.listening(heard.append):
        stream.emit(RunStarted("inside"))
    stream.emit(RunStarted("outside"))
    assert heard == [RunStarted("inside")]


def test_a_file_that_cannot_be_opened_is_an_error_that_names_its_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RunDirectoryError, match="file"):
        Stream(tmp_path / "file" / "events.jsonl")


def test_a_phase_starts_ends_and_is_measured():
    heard = heard_during_a_phase(num_advances=0)
    assert heard[:2] == [PhaseStarted("count", 1000, "rows"), PhaseEnded("count")]
    assert isinstance(heard[2], Measured)
    assert (heard[2].cost_id, heard[2].sent_bytes) == ("count", 7.0)


def test_a_phase_that_fails_ends_but_is_not_measured():
    heard: list[Event] = []
    stream = Stream()
    with stream.listening(heard.append), pytest.raises(KeyError), stream.phase("count"):
        raise KeyError
    assert heard == [PhaseStarted("count", None, ""), PhaseEnded("count")]


def test_a_phase_within_the_pause_is_shown_once_with_all_that_it_did(monkeypatch):
    monkeypatch.setattr("talka.events.stream.ADVANCE_EVERY_S", math.inf)
    heard = heard_during_a_phase(num_advances=1000)
    assert [event for event in heard if isinstance(event, PhaseAdvanced)] == [
        PhaseAdvanced("count", 1000)
    ]


def test_a_phase_beyond_the_pause_is_shown_at_every_advance(monkeypatch):
    monkeypatch.setattr("talka.events.stream.ADVANCE_EVERY_S", 0)
    heard = heard_during_a_phase(num_advances=3)
    assert [event.done for event in heard if isinstance(event, PhaseAdvanced)] == [1, 2, 3]


def heard_during_a_phase(*, num_advances: int) -> list[Event]:
    heard: list[Event] = []
    stream = Stream()
    with stream.listening(heard.append), stream.phase("count", total=1000, unit="rows") as phase:
        for _ in range(num_advances):
            phase.advance()
        phase.sent_bytes = 7.0
    return heard


def emit_to(folder: Path, events: list[Event]) -> None:
    stream = Stream(folder / "events.jsonl")
    for event in events:
        stream.emit(event)
    stream.close()


def test_a_listener_that_raises_is_logged_once_and_the_others_get_every_event(tmp_path, caplog):
    stream = Stream(tmp_path / "events.jsonl")
    heard: list[Event] = []

    def fails(event: Event):
        raise asyncio.CancelledError

    with stream.listening(fails), stream.listening(heard.append):
        stream.emit(RunStarted("a"))
        stream.emit(RunStarted("b"))
        stream.notify_listeners(RunStarted("c"))
    stream.close()
    assert heard == [RunStarted("a"), RunStarted("b"), RunStarted("c")]
    assert len(read_run(tmp_path).events) == 2
    assert [record.getMessage() for record in caplog.records] == [
        "a listener of events raised CancelledError(). The work continues."
    ]


def test_ctrl_c_passes_through_a_listener():
    def interrupted(event: Event):
        raise KeyboardInterrupt

    stream = Stream()
    with stream.listening(interrupted), pytest.raises(KeyboardInterrupt):
        stream.emit(RunStarted("a"))


def test_a_full_disk_loses_events_but_does_not_stop_the_work(tmp_path, caplog, monkeypatch):
    """The disk accepts half of the second line, then nothing, and later everything."""
    room = [10_000, 10, 0, 10_000]

    def write(file, data):
        if room[0] == 0:
            room.pop(0)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real_write(file, data[: room.pop(0)])

    real_write = os.write
    monkeypatch.setattr("talka.events.stream.os.write", write)
    stream = Stream(tmp_path / "events.jsonl")
    for name in "abc":
        stream.emit(RunStarted(name))
    stream.close()
    record = read_run(tmp_path)
    assert [stamped.event for stamped in record.events] == [RunStarted("a"), RunStarted("c")]
    assert record.num_unreadable_lines == 1
    [logged] = caplog.records
    assert "No space left on device" in logged.getMessage()
