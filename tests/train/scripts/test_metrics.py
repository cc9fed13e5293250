"""`talka.train.log`: which events and lines come of it, at which moment."""

import math
import subprocess
import sys

import numpy as np
import pytest

import talka
from talka.errors import InvalidValueError
from talka.events import Stream, read_run
from talka.events.current import OwnStream, before_end, own_stream, providing_stream
from talka.train.events import MetricsLogged
from talka.train.scripts.metrics import EVENT_EVERY_S, LINE_EVERY_S, MetricLog, last_metrics


class Rank:
    """A log whose clock the test turns, with its events and lines."""

    def __init__(self, rank=0):
        self.now_s, self.events, self.lines = 100.0, [], []
        stream = Stream()
        stream._listeners.append(self.events.append)
        own = OwnStream(stream, rank)
        self.log = MetricLog(own, write=self.lines.append, clock=lambda: self.now_s)

    def add(self, step=None, epoch=None, **metrics):
        self.log.add(step, epoch, metrics)


def test_the_first_value_is_written_at_once_and_later_ones_ten_times_per_second():
    rank = Rank()
    for step in range(100):
        rank.add(step, loss=float(step))
        rank.now_s += EVENT_EVERY_S / 9.5
    rank.log.flush()
    assert rank.events[0] == MetricsLogged("loss", 0.0, 0, None, 1)
    assert rank.events[1] == MetricsLogged("loss", 10.0, 10, None, 10)
    assert rank.events[-1].value == 99.0
    assert len(rank.events) == 11
    assert sum(event.num_values for event in rank.events) == 100
    rank.log.flush()
    assert len(rank.events) == 11, "nothing twice"


def test_each_metric_has_its_own_limit():
    rank = Rank()
    rank.add(1, loss=1.0, accuracy=0.5)
    rank.add(None, 1, accuracy=0.75)
    assert [event.name for event in rank.events] == ["loss", "accuracy"]
    rank.log.flush()
    assert rank.events[2:] == [MetricsLogged("accuracy", 0.75, None, 1, 1)]
    assert rank.log.last() == {"loss": 1.0, "accuracy": 0.75}


def test_rank_0_prints_one_line_per_second_and_the_last():
    rank = Rank()
    for step in range(5):
        rank.add(step, loss=1 / 3 + step)
        rank.add(epoch=step, accuracy=1)
        rank.now_s += LINE_EVERY_S / 2
    rank.log.flush()
    assert [line for line in rank.lines if "loss" in line] == [
        "step 0  loss 0.3333",
        "step 2  loss 2.333",
        "step 4  loss 4.333",
    ]
    assert "epoch 4  accuracy 1" in rank.lines


def test_other_ranks_print_nothing():
    rank = Rank(rank=1)
    rank.add(1, loss=1.0)
    rank.log.flush()
    assert rank.lines == []
    assert len(rank.events) == 1


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300])
def test_a_value_that_is_not_finite_is_none_in_events_and_itself_in_lines(value):
    rank = Rank()
    rank.add(7, loss=value)
    assert rank.events == [MetricsLogged("loss", None, 7, None, 1)]
    assert rank.lines == [f"step 7  loss {value:.4g}"]


@pytest.fixture
def logged(tmp_path, capsys):
    """Returns the events of a call of `log` in a rank, read back from its file."""

    def run(**arguments):
        stream = Stream(tmp_path / "events.rank-0.jsonl")
        with providing_stream(stream, 0):
            talka.train.log(**arguments)
        stream.close()
        record = read_run(tmp_path)
        assert record.num_unreadable_lines == 0
        return [stamped.event for stamped in record.events]

    return run


def test_numbers_of_all_kinds_are_read_back(logged):
    torch = pytest.importorskip("torch")
    loss = torch.tensor([0.25], requires_grad=True)
    arguments = {
        "step": np.int64(3),
        "epoch": 0.5,
        "loss": loss,
        "count": np.int32(4),
        "huge": 10**400,
    }
    assert logged(**arguments) == [
        MetricsLogged("loss", 0.25, 3, 0.5, 1),
        MetricsLogged("count", 4, 3, 0.5, 1),
        MetricsLogged("huge", None, 3, 0.5, 1),
    ]


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ({}, "at least one number by name, such as loss=0.3"),
        ({"step": 1}, "at least one number by name"),
        ({"loss": "0.3"}, "loss is '0.3', but must be a number"),
        ({"loss": None}, "loss is None, but must be a number"),
        ({"loss": np.ones(3)}, "loss is 'an array', but must be a number, or one element"),
        ({"step": -1, "loss": 1}, "step is -1, but must be a whole number of at least 0"),
        ({"step": 0.5, "loss": 1}, "step is 0.5"),
        ({"step": math.nan, "loss": 1}, "step is nan"),
        ({"epoch": math.inf, "loss": 1}, "epoch is inf"),
    ],
)
def test_what_is_not_a_number_is_refused(arguments, expected):
    with pytest.raises(InvalidValueError) as refused:
        talka.train.log(**arguments)
    assert expected in str(refused.value)


def test_what_was_held_back_is_written_before_the_stream_of_a_gang_ends(tmp_path, capsys):
    stream = Stream(tmp_path / "events.rank-0.jsonl")
    with providing_stream(stream, 0):
        for step in range(3):
            talka.train.log(step=step, loss=step)
        assert last_metrics() == {"loss": 2}
    stream.close()
    events = [stamped.event for stamped in read_run(tmp_path).events]
    assert [event.step for event in events] == [0, 2]
    assert capsys.readouterr().out == "step 0  loss 0\nstep 2  loss 2\n"


def test_an_error_at_the_end_does_not_hide_that_of_the_block(tmp_path, caplog):
    def fail():
        raise ValueError("at the end")

    def run():
        with providing_stream(Stream(), 3):
            assert own_stream().rank == 3
            before_end(fail)
            raise KeyError

    with pytest.raises(KeyError):
        run()
    assert "could not write the last events" in caplog.text
    assert own_stream().rank != 3


SCRIPT = """
import sys
import talka
for step in range(1000):
    talka.train.log(step=step, loss=1 - step / 1000)
talka.train.log(epoch=1, accuracy=0.5)
assert not {"torch", "numpy", "numba"} & set(sys.modules), "it is cheap"
"""


@pytest.mark.parametrize("is_recorded", [False, True])
def test_plain_python_prints_and_records_only_if_there_is_a_run(tmp_path, is_recorded):
    environment = {"RANK": "0", "TALKA_RUN_DIR": str(tmp_path)} if is_recorded else {}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "step 0  loss 1"
    assert "step 999  loss 0.001" in lines
    assert "epoch 1  accuracy 0.5" in lines
    assert len(lines) < 20
    assert "\r" not in done.stdout
    files = [path.name for path in tmp_path.iterdir()]
    assert files == (["events.rank-0.jsonl"] if is_recorded else [])
