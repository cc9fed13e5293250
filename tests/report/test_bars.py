import random

import pytest

from talka.engine.events import TasksRan
from talka.events import Stamped, read_run
from talka.report.bars import OTHERS, SEVERAL, Bar, TimelineBars, merged, with_few_kinds
from talka.report.base import span_of
from tests.report.samples import write_run, write_unfinished_run


def bars_of(record):
    return record.fold(TimelineBars).bars(span_of(record).end_s)


def bar(start_s, end_s, *, kind="map", row="worker-0"):
    return Bar(row, kind, kind, start_s, end_s, 1, end_s - start_s, 10)


def many_bars(num_bars, *, num_rows=8):
    seeded = random.Random(3)
    bars = []
    for index in range(num_bars):
        start_s = index // num_rows * 0.01
        kind = seeded.choice(["map", "reduce", "sort"])
        row = f"worker-{index % num_rows}"
        bars.append(bar(start_s, start_s + seeded.uniform(0.001, 0.01), kind=kind, row=row))
    return bars


def test_few_bars_stay_as_they_are():
    bars = [bar(0, 1), bar(1, 2)]
    assert merged(bars) == bars


def test_twenty_thousand_bars_become_some_thousands():
    few = merged(many_bars(20_000), max_bars=4000)
    assert 500 < len(few) <= 4000


def test_nothing_gets_lost_when_bars_melt():
    bars = many_bars(5000)
    few = merged(bars, max_bars=100)
    assert sum(one.num_pieces for one in few) == 5000
    assert sum(one.output_bytes or 0 for one in few) == 50_000
    assert abs(sum(one.busy_s for one in few) - sum(one.busy_s for one in bars)) < 1e-6
    assert max(one.end_s for one in few) == max(one.end_s for one in bars)


def test_neighbours_of_one_kind_keep_it_and_others_become_several():
    bars = [bar(0, 1), bar(1, 2), bar(50, 50.1), bar(50.1, 50.2, kind="sort"), bar(100, 101)]
    few = merged(bars, max_bars=3)
    assert [(one.kind, one.start_s, one.end_s) for one in few] == [
        ("map", 0, 2),
        (SEVERAL, 50, 50.2),
        ("map", 100, 101),
    ]


def test_every_row_keeps_at_least_one_bar():
    few = merged(many_bars(1000, num_rows=20), max_bars=5)
    assert {one.row for one in few} == {f"worker-{index}" for index in range(20)}


def test_bars_of_no_length_melt_too():
    assert len(merged([bar(1, 1) for _ in range(10)], max_bars=3)) == 1


def test_the_kinds_that_took_longest_keep_their_names():
    bars = [bar(0, 5, kind="long"), bar(5, 6, kind="short"), bar(6, 7, kind="long")]
    assert [one.kind for one in with_few_kinds(bars, max_kinds=1)] == ["long", OTHERS, "long"]


def test_a_phase_inside_of_another_gets_a_row_of_its_own(tmp_path):
    bars = bars_of(read_run(write_run(tmp_path)))
    inner = {one.kind for one in bars if one.row == "rank-2 (inner)"}
    assert inner == {"step/exchange"}


def test_a_phase_that_did_not_end_goes_on_to_the_last_event(tmp_path):
    phase, task = bars_of(read_run(write_unfinished_run(tmp_path)))
    assert (phase.name, phase.end_s) == ("count (did not end)", task.end_s)


def test_many_bars_are_merged_while_they_arrive_and_nothing_is_lost(monkeypatch):
    monkeypatch.setattr("talka.report.bars.MAX_KEPT", 40)
    timeline = TimelineBars()
    for index in range(1000):
        start_s = 0.1 * index
        ran = TasksRan("read", f"process-{index % 2}", 3, start_s, start_s + 0.05, 0.05, 7)
        timeline.add(Stamped(start_s, "driver", ran))
    bars = timeline.bars(100.0)
    assert len(bars) <= 40
    assert len(bars) + timeline.num_tasks_merged == 1000
    assert sum(bar.num_pieces for bar in bars) == 3000
    assert sum(bar.output_bytes for bar in bars) == 7000
    assert sum(bar.busy_s for bar in bars) == pytest.approx(50.0)
    assert {bar.row for bar in bars} == {"process-0", "process-1"}
    assert min(bar.start_s for bar in bars) == 0.0
    assert max(bar.end_s for bar in bars) == pytest.approx(99.95)
