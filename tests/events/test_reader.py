import json

import pytest

from talka.errors import RunDirectoryError
from talka.events import Comparison, Failure, Measured, Predicted, RunStarted, compare, read_run
from talka.train.events import StepDone


def write_lines(folder, *, writer="events.jsonl", lines=()):
    texts = [line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines]
    with (folder / writer).open("a") as file:
        file.writelines(texts)


def started(time_s, name):
    return {"event": "RunStarted", "time_s": time_s, "name": name}


def measured(part, sent_bytes, seconds):
    event = {"event": "Measured", "time_s": 1.0, "cost_id": part}
    return event | {"sent_bytes": sent_bytes, "seconds": seconds}


def test_events_of_several_writers_are_merged_by_time(tmp_path):
    write_lines(tmp_path, lines=[started(1, "a"), started(4, "d")])
    write_lines(tmp_path, writer="events.rank-0.jsonl", lines=[started(2, "b")])
    write_lines(tmp_path, writer="events.rank-10.jsonl", lines=[started(3, "c")])
    assert [stamped.event for stamped in read_run(tmp_path).events] == [
        RunStarted("a"),
        RunStarted("b"),
        RunStarted("c"),
        RunStarted("d"),
    ]


def test_every_event_has_its_writer(tmp_path):
    write_lines(tmp_path, lines=[started(1, "a")])
    write_lines(tmp_path, writer="events.rank-3.jsonl", lines=[started(2, "b")])
    assert [stamped.source for stamped in read_run(tmp_path).events] == ["driver", "rank-3"]


def test_fields_with_the_names_of_earlier_versions_are_read(tmp_path):
    event = {"event": "Measured", "time_s": 1.0, "part": "a", "sent_bytes": 2.0, "seconds": 3.0}
    write_lines(tmp_path, lines=[event])
    [stamped] = read_run(tmp_path).events
    assert stamped.event == Measured("a", 2.0, 3.0)


def test_the_wait_of_a_step_is_read_under_its_earlier_name(tmp_path):
    step = {"event": "StepDone", "time_s": 1.0, "step": 7, "sent_bytes": 1, "received_bytes": 2}
    step |= {"compute_s": 0.5, "encode_s": 0.25, "exchange_s": 0.125, "decode_s": 0.0625}
    write_lines(tmp_path, lines=[step])
    [stamped] = read_run(tmp_path).events
    assert stamped.event == StepDone(7, 1, 2, 0.5, 0.25, wait_s=0.125, decode_s=0.0625)


@pytest.mark.parametrize(
    "line",
    [
        '{"event": "RunStarted", "time_s": 3, "na',
        "[]\n",
        "null\n",
        '{"event": ["RunStarted"], "time_s": 3, "name": "a"}\n',
        '{"event": "RunStarted", "name": "a"}\n',
        '{"event": "RunStarted", "time_s": 3}\n',
        '{"event": "RunStarted", "time_s": 3, "name": null}\n',
        '{"event": "RunEnded", "time_s": 3, "status": "lost"}\n',
    ],
)
def test_a_line_that_cannot_be_read_is_counted_and_skipped(tmp_path, line):
    write_lines(tmp_path, lines=[started(1, "a"), line])
    record = read_run(tmp_path)
    assert [stamped.event for stamped in record.events] == [RunStarted("a")]
    assert record.num_unreadable_lines == 1


def test_bytes_that_are_not_text_are_counted_and_skipped(tmp_path):
    write_lines(tmp_path, lines=[started(1, "a")])
    with (tmp_path / "events.jsonl").open("ab") as file:
        file.write(b"\xff\xfe\x00\n")
    record = read_run(tmp_path)
    assert (len(record.events), record.num_unreadable_lines) == (1, 1)


@pytest.mark.parametrize(
    "line",
    [
        "[" * 2_000,
        '{"event": "RunStarted", "time_s": 1e999, "name": "a"}',
        '{"event": "RunStarted", "time_s": NaN, "name": "a"}',
        '{"event": "RunStarted", "time_s": -1, "name": "a"}',
        f'{{"event": "RunStarted", "time_s": {"9" * 400}, "name": "a"}}',
        f'{{"event": "Spilled", "time_s": 1, "num_bytes": {"9" * 400}, "seconds": 1}}',
        f'{{"event": "Spilled", "time_s": 1, "num_bytes": {"9" * 5_000}, "seconds": 1}}',
        '{"event": "Spilled", "time_s": 1, "num_bytes": true, "seconds": 1}',
        '{"event": "Spilled", "time_s": 1, "num_bytes": 1, "seconds": 1e300}',
        '{"event": {}, "time_s": 1}',
        '{"event": "RunEnded", "time_s": 1, "status": []}',
    ],
)
def test_huge_numbers_and_deep_nesting_are_damage(tmp_path, line):
    write_lines(tmp_path, lines=[started(1, "a"), f"{line}\n", started(2, "b")])
    record = read_run(tmp_path)
    assert [stamped.event.name for stamped in record.events] == ["a", "b"]
    assert (record.num_unreadable_lines, record.num_damaged_lines) == (1, 1)


def test_a_line_longer_than_any_event_is_damage_and_is_not_kept_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("talka.events.following.MAX_LINE_BYTES", 100)
    write_lines(tmp_path, lines=[started(1, "a"), started(2, "x" * 1_000), started(3, "c")])
    record = read_run(tmp_path)
    assert [stamped.event.name for stamped in record.events] == ["a", "c"]
    assert record.num_damaged_lines == 1


def test_half_a_surrogate_pair_becomes_a_question_mark(tmp_path):
    write_lines(tmp_path, lines=[started(1, "a\ud800b")])
    assert read_run(tmp_path).events[0].event == RunStarted("a?b")


def test_a_cut_last_line_is_not_damage(tmp_path):
    write_lines(tmp_path, lines=[started(1, "a"), '{"event": "RunStarted", "time_s": 3, "na'])
    record = read_run(tmp_path)
    assert (record.num_unreadable_lines, record.num_damaged_lines) == (1, 0)


@pytest.mark.parametrize("content", [b"\x00\xff" * 100, b"[" * 2_000, b"hello\nworld\n"])
def test_a_file_without_a_single_event_is_not_a_run(tmp_path, content):
    (tmp_path / "events.jsonl").write_bytes(content)
    with pytest.raises(RunDirectoryError, match="has no line that is an event, so it is not a run"):
        read_run(tmp_path)


def test_fields_of_a_newer_version_are_ignored_and_those_of_an_older_one_filled(tmp_path):
    line = {"event": "Failure", "time_s": 1, "message": "broke", "colour": "red"}
    write_lines(tmp_path, lines=[line])
    assert read_run(tmp_path).events[0].event == Failure("broke", detail="")


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", "null", "[" * 2_000, '{"a":' * 200 + "1" + "}" * 200]
)
def test_a_config_or_result_that_cannot_be_read_counts_as_absent(tmp_path, text):
    write_lines(tmp_path, lines=[started(1, "a")])
    (tmp_path / "config.json").write_text(text)
    (tmp_path / "result.json").write_text(text)
    record = read_run(tmp_path)
    assert (record.config, record.result) == ({}, None)


@pytest.mark.parametrize("pid", [None, "x", []])
def test_an_invalid_pid_is_not_a_live_process(tmp_path, monkeypatch, pid):
    monkeypatch.setattr("talka.events.liveness.socket.gethostname", lambda: "here")
    write_lines(tmp_path, lines=[started(1, "a")])
    (tmp_path / "config.json").write_text(json.dumps({"host": "here", "pid": pid}))
    assert read_run(tmp_path).status == "killed"


def test_a_folder_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(RunDirectoryError, match="does not exist"):
        read_run(tmp_path / "nothing")


def test_a_folder_without_events_is_an_error(tmp_path):
    with pytest.raises(RunDirectoryError, match="is not a run"):
        read_run(tmp_path)


def test_a_file_is_not_a_run(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RunDirectoryError, match="is not a folder"):
        read_run(tmp_path / "file")


def test_events_that_cannot_be_opened_are_an_error(tmp_path):
    (tmp_path / "events.jsonl").mkdir()
    with pytest.raises(
        RunDirectoryError, match=r"cannot be read \(Is a directory: .*events\.jsonl\)"
    ):
        read_run(tmp_path)


def test_an_invalid_path_is_an_error(tmp_path):
    with pytest.raises(RunDirectoryError, match="File name too long"):
        read_run(tmp_path / ("x" * 300))


def test_predicted_and_measured_costs_are_matched_by_cost_id():
    predicted = Predicted("step", 10.0, 1.0, "why")
    other = Measured("load", None, 2.0)
    assert compare([predicted, other, Measured("step", 12.0, 1.5)]) == [
        Comparison("step", predicted, Measured("step", 12.0, 1.5)),
        Comparison("load", None, other),
    ]


def test_repetitions_are_added_up():
    events = [Measured("step", 10.0, 1.0), Measured("step", None, 2.0)]
    assert compare(events) == [Comparison("step", None, Measured("step", 10.0, 3.0))]


def test_bytes_of_ranks_are_summed_and_the_slowest_rank_counts(tmp_path):
    for rank, seconds in enumerate([1.0, 1.5]):
        lines = [measured("step", 100, seconds), measured("step", 100, seconds)]
        write_lines(tmp_path, writer=f"events.rank-{rank}.jsonl", lines=lines)
    assert read_run(tmp_path).comparisons() == [
        Comparison("step", None, Measured("step", 400, 3.0))
    ]


def test_the_last_prediction_of_a_cost_id_counts():
    first, second = Predicted("step", 1.0, 1.0, "guess"), Predicted("step", 2.0, 2.0, "sample")
    assert compare([first, second]) == [Comparison("step", second, None)]
