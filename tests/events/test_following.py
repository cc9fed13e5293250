"""Following a run against its twin: reading everything again after each step of the writers."""

import json
import os
import random

import pytest

from talka.errors import OptionError, RunDirectoryError
from talka.events import Measured, Run, RunStarted, Stream, follow, read_run
from talka.events.costs import Costs
from talka.events.record import RunRecord
from talka.report import folds_of
from talka.report.page import page
from tests.report.samples import write_run


def line(time_s, name):
    return json.dumps({"event": "RunStarted", "time_s": time_s, "name": name}).encode() + b"\n"


def append(path, data):
    with path.open("ab") as file:
        file.write(data)


def names(events):
    return [stamped.event.name for stamped in events]


def test_a_poll_returns_what_is_new_in_all_files_by_time(tmp_path):
    follower = follow(tmp_path)
    assert follower.poll() == []
    append(tmp_path / "events.jsonl", line(1, "a") + line(4, "d"))
    append(tmp_path / "events.rank-0.jsonl", line(2, "b"))
    assert names(follower.poll()) == ["a", "b", "d"]
    assert follower.poll() == []
    append(tmp_path / "events.rank-1.jsonl", line(3, "late, in a file that is new"))
    append(tmp_path / "events.jsonl", line(5, "e"))
    assert names(follower.poll()) == ["late, in a file that is new", "e"]
    assert len(follower.record.events) == 5
    assert (follower.record.first_s, follower.record.last_s) == (1.0, 5.0)


def test_half_a_line_waits_for_its_rest(tmp_path):
    path = tmp_path / "events.jsonl"
    data = line(1, "a")
    follower = follow(tmp_path)
    for byte in data[:-1]:
        append(path, bytes([byte]))
        assert follower.poll() == []
    append(path, data[-1:])
    assert names(follower.poll()) == ["a"]
    assert follower.record.num_unreadable_lines == 0


def test_any_order_of_writes_and_polls_gives_what_reading_once_gives(tmp_path):
    for seed in range(20):
        chance = random.Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        files = [folder / f"events{name}.jsonl" for name in ("", ".rank-0", ".rank-1")]
        garbage = [
            b"\n",
            b"{}\n",
            b"\xff\n",
            b"[" * 500 + b"\n",
            b'{"event": "New", "time_s": 1}\n',
        ]
        left = {
            file: b"".join(
                chance.choice([*garbage, *(line(chance.random(), str(i)) for i in range(9))])
                for _ in range(chance.randrange(30))
            )
            + line(2, "last")
            for file in files
        }
        follower = follow(folder)
        polled = []
        while any(left.values()):
            file = chance.choice(files)
            size = chance.choice([1, 10, 100, 10_000])
            append(file, left[file][:size])
            left[file] = left[file][size:]
            if chance.random() < 0.5:
                polled += follower.poll()
        polled += follower.poll()
        record = read_run(folder)
        assert sorted(polled, key=repr) == sorted(record.events, key=repr)
        for source in ("driver", "rank-0", "rank-1"):
            own = [stamped for stamped in polled if stamped.source == source]
            assert len(own) == sum(stamped.source == source for stamped in record.events)
        assert follower.record.num_damaged_lines == record.num_damaged_lines
        assert follower.record.num_by_kind == record.num_by_kind
        assert follower.restarts == []


@pytest.mark.parametrize("chunk_bytes", [1, 7, 64, 1 << 20])
def test_a_line_that_is_too_long_is_damaged_wherever_chunks_end(tmp_path, monkeypatch, chunk_bytes):
    monkeypatch.setattr("talka.events.following._CHUNK_BYTES", chunk_bytes)
    monkeypatch.setattr("talka.events.following.MAX_LINE_BYTES", 100)
    append(tmp_path / "events.jsonl", line(1, "a") + line(2, "x" * 500) + line(3, "c"))
    follower = follow(tmp_path)
    assert names(follower.poll()) == ["a", "c"]
    assert follower.record.num_damaged_lines == 1


@pytest.mark.parametrize("content", [line(9, "z"), line(9, "z") * 5, b""])
def test_a_file_that_was_replaced_starts_the_record_again_and_is_said(tmp_path, content):
    path = tmp_path / "events.jsonl"
    append(path, line(1, "a") + line(2, "b"))
    append(tmp_path / "events.rank-0.jsonl", line(3, "c"))
    follower = follow(tmp_path)
    first = follower.record
    follower.poll()
    path.write_bytes(content)
    assert names(follower.poll()) == ["c"] + ["z"] * content.count(b"\n")
    assert follower.restarts == ["events.jsonl was truncated or replaced"]
    assert follower.record is not first
    assert len(follower.record.events) == 1 + content.count(b"\n")


def test_a_newer_copy_of_a_file_is_not_a_replacement(tmp_path):
    path = tmp_path / "events.jsonl"
    append(path, line(1, "a"))
    follower = follow(tmp_path)
    follower.poll()
    (tmp_path / "copy").write_bytes(path.read_bytes() + line(2, "b"))
    os.replace(tmp_path / "copy", path)
    assert names(follower.poll()) == ["b"]
    assert follower.restarts == []


def test_the_status_follows_the_run(tmp_path):
    run = Run("job", {"x": 1}, root=tmp_path)
    follower = follow(run.dir)
    follower.poll()
    assert (follower.status, follower.record.config["config"]) == ("running", {"x": 1})
    with run:
        run.finish({"answer": 42})
    follower.poll()
    assert (follower.status, follower.record.result) == ("done", {"answer": 42})


def test_batches_end_with_the_run_and_do_not_spin(tmp_path, monkeypatch):
    run = Run("job", {}, root=tmp_path)
    steps = iter(
        [lambda: run.stream.emit(Measured("a", None, 1.0)), lambda: run.__exit__(*[None] * 3)]
    )
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        next(steps, lambda: None)()

    monkeypatch.setattr("talka.events.following.time.sleep", sleep)
    batches = list(follow(run.dir).batches(every_s=0.25))
    assert [[type(stamped.event).__name__ for stamped in batch] for batch in batches] == [
        ["RunStarted"],
        ["Measured"],
        ["RunEnded"],
    ]
    assert slept == [0.25] * 3


def test_batches_of_a_killed_run_end(tmp_path):
    Stream(tmp_path / "events.jsonl").close()
    assert list(follow(tmp_path).batches()) == []


def test_a_page_from_sums_is_the_page_from_all_events(tmp_path, monkeypatch):
    monkeypatch.setattr("talka.report.page._plotly_script", lambda: "")
    whole = write_run(tmp_path / "runs", error="broke")
    copy = tmp_path / "copy"
    copy.mkdir()
    follower = follow(copy, folds=folds_of(), keep_events=False)
    for name in (
        "config.json",
        "events.jsonl",
        *(f"events.rank-{rank}.jsonl" for rank in range(4)),
    ):
        data = (whole / name).read_bytes()
        for start in range(0, len(data), 3_000):
            append(copy / name, data[start : start + 3_000])
            follower.poll()
            page(follower.record)
    assert follower.record.events == []
    assert page(follower.record).replace(str(copy), "") == page(read_run(whole)).replace(
        str(whole), ""
    )


def test_sums_are_the_same_however_events_arrive(tmp_path):
    events = read_run(write_run(tmp_path)).events
    for size in (1, 7, 1000):
        record = RunRecord(tmp_path)
        for start in range(0, len(events), size):
            record.update(events[start : start + size])
            record.comparisons()
        assert record.comparisons() == RunRecord(tmp_path, {}, events).comparisons()


def test_sums_that_were_not_kept_are_an_error(tmp_path):
    record = RunRecord(tmp_path, keep_events=False)
    assert record.comparisons() == []
    record = RunRecord(tmp_path, keep_events=False, events=read_run(write_run(tmp_path)).events)
    with pytest.raises(OptionError, match="fold Costs was not kept from the start"):
        record.fold(Costs)


def test_a_folder_that_does_not_exist_cannot_be_followed(tmp_path):
    with pytest.raises(RunDirectoryError, match="does not exist"):
        follow(tmp_path / "nothing")


def test_a_run_directory_may_have_no_events_yet(tmp_path):
    follower = follow(tmp_path)
    assert (follower.poll(), follower.status) == ([], "ended")
    append(tmp_path / "events.jsonl", line(1, "a"))
    assert [stamped.event for stamped in follower.poll()] == [RunStarted("a")]


@pytest.mark.parametrize("name", ["events.jsonl", "events.rank-0.jsonl"])
def test_a_pipe_in_place_of_a_file_does_not_stop_the_reader(tmp_path, name):
    append(tmp_path / "events.rank-9.jsonl", line(1, "a"))
    os.mkfifo(tmp_path / name)
    with pytest.raises(RunDirectoryError, match="cannot be read"):
        follow(tmp_path).poll()


def test_a_config_that_is_a_pipe_counts_as_absent(tmp_path):
    append(tmp_path / "events.jsonl", line(1, "a"))
    os.mkfifo(tmp_path / "config.json")
    assert read_run(tmp_path).config == {}


def test_a_file_without_an_end_does_not_stop_the_reader(tmp_path):
    append(tmp_path / "events.jsonl", line(1, "a"))
    (tmp_path / "events.rank-0.jsonl").symlink_to("/dev/zero")
    assert names(follow(tmp_path).poll()) == ["a"]
