import re

import pytest

from talka.events import RunEnded, RunRecord, Stamped, read_run
from talka.report.page import page
from talka.report.step_series import NormSeen, StepSeries, thinned_norms, thinned_steps
from talka.report.steps import steps_section
from talka.train.events import ResidualNorm, StepDone
from tests.report.samples import NUM_RANKS, NUM_STEPS, write_run
from tests.report.test_page import plot


def steps_of(record):
    return record.fold(StepSeries).steps()


def record(tmp_path, *events):
    """Events of (source, event), one a second."""
    stamped = [Stamped(float(time_s), *one) for time_s, one in enumerate(events)]
    return RunRecord(tmp_path, {}, stamped)


def done(step, *, sent_bytes=100, compute_s=0.5, encode_s=0.1, wait_s=0.3, decode_s=0.1):
    return StepDone(step, sent_bytes, sent_bytes, compute_s, encode_s, wait_s, decode_s)


def text_of(section):
    return re.sub("<.*?>", " ", section.body.split("<h3>")[0])


def test_a_run_without_steps_has_no_such_section(tmp_path):
    assert steps_section(record(tmp_path, ("driver", RunEnded("done")))) is None
    assert steps_section(record(tmp_path, ("rank-0", ResidualNorm(1, 2.0)))) is None


def test_it_says_totals_and_where_the_time_goes(tmp_path):
    text = text_of(steps_section(read_run(write_run(tmp_path))))
    sent = NUM_RANKS * NUM_STEPS * 400_000
    assert f"4 workers took 5 steps and sent {sent / 1e6:.2f} MB in all, 1.60 MB per step" in text
    assert "computing 875 ms (71%), encoding 20 ms (2%), exchanging 300 ms (24%)" in text


def test_it_stands_on_the_page_with_its_three_plots(tmp_path):
    text = page(read_run(write_run(tmp_path)))
    assert "<h2>Training steps</h2>" in text
    seconds = plot(text, "step-seconds")
    assert [one["name"] for one in seconds] == ["computing", "encoding", "exchanging", "decoding"]
    assert seconds[0]["x"] == [2, 3, 4, 5], "the first step includes the start"
    assert seconds[0]["y"] == pytest.approx([0.875] * 4)
    assert {one["stackgroup"] for one in seconds} == {"one"}
    [sent] = plot(text, "step-bytes")
    assert (sent["x"], sent["y"]) == ([1, 2, 3, 4, 5], [NUM_RANKS * 400_000] * 5)
    norms = plot(text, "residual-norm")
    assert [one["name"] for one in norms] == [f"rank-{rank}" for rank in range(NUM_RANKS)]
    assert (norms[2]["x"], norms[2]["y"]) == ([1, 3, 5], [2.5, 3.5, 4.5])


def test_one_single_step_is_shown_as_it_is(tmp_path):
    section = steps_section(record(tmp_path, ("rank-0", done(1, compute_s=5.0))))
    assert "1 worker took 1 step and sent 100 B in all" in text_of(section)
    assert "computing 5 s (91%)" in text_of(section)
    assert "Residual norm" not in section.body


def test_steps_that_took_no_time_and_sent_nothing_are_no_error(tmp_path):
    empty = done(1, sent_bytes=0, compute_s=0, encode_s=0, wait_s=0, decode_s=0)
    section = steps_section(record(tmp_path, ("rank-0", empty), ("rank-0", ResidualNorm(1, 0.0))))
    assert "computing 0 ms (0%)" in text_of(section)
    assert "Bytes sent in a step" not in section.body
    assert "Residual norm" not in section.body


def test_seconds_are_means_and_bytes_sums_over_the_workers_that_said_something(tmp_path):
    first, second = steps_of(
        record(
            tmp_path,
            ("rank-0", done(1, compute_s=1.0)),
            ("rank-1", done(1, compute_s=3.0, sent_bytes=50)),
            ("rank-1", done(2, compute_s=2.0)),
        )
    )
    assert (first.seconds["computing"], first.sent_bytes, first.is_first) == (2.0, 150, True)
    assert (second.seconds["computing"], second.sent_bytes, second.is_first) == (2.0, 100, False)


def test_a_worker_that_starts_again_at_step_one_goes_on_counting(tmp_path):
    again = record(
        tmp_path,
        *[("rank-0", done(step)) for step in (1, 2, 3)],
        *[("rank-0", done(step, sent_bytes=7)) for step in (1, 2)],
        ("rank-0", ResidualNorm(2, 1.5)),
    )
    assert [(step.number, step.sent_bytes) for step in steps_of(again)] == [
        *((1, 100), (2, 100), (3, 100)),
        *((4, 7), (5, 7)),
    ]
    assert again.fold(StepSeries).norms() == {"rank-0": [NormSeen(5, 1.5)]}


@pytest.mark.parametrize("num_steps", [1, 499, 500, 501, 12_345])
def test_thinned_steps_keep_totals_and_are_few(tmp_path, num_steps):
    steps = steps_of(
        record(tmp_path, *[("rank-0", done(n, sent_bytes=n)) for n in range(1, num_steps + 1)])
    )
    few = thinned_steps(steps)
    assert min(num_steps, 250) <= len(few) <= 500
    assert few[0].sent_bytes >= 1
    assert few[-1].sent_bytes <= num_steps
    assert sorted(step.number for step in few) == [step.number for step in few]
    if num_steps <= 500:
        assert [(step.number, step.sent_bytes) for step in few] == [(n, n) for n in range(1, num_steps + 1)]  # fmt: skip
    else:
        assert f"{num_steps:,} steps, drawn as" in _body_of(tmp_path, num_steps)


def _body_of(tmp_path, num_steps):
    return steps_section(
        record(tmp_path, *[("rank-0", done(n)) for n in range(1, num_steps + 1)])
    ).body


def test_thinned_norms_are_norms_that_were_seen():
    norms = [NormSeen(step, step**0.5) for step in range(3000)]
    few = thinned_norms(norms)
    assert len(few) == 500
    assert set(few) <= set(norms)
    assert few[-1] == norms[-1]


def test_curves_of_many_workers_are_cut_and_the_page_says_so(tmp_path):
    events = [(f"rank-{rank}", done(1)) for rank in range(20)]
    events += [(f"rank-{rank}", ResidualNorm(1, 1.0)) for rank in range(20)]
    body = steps_section(record(tmp_path, *events)).body
    assert "The first 16 of 20 workers." in body
    names = [one["name"] for one in plot(body, "residual-norm")]
    assert names == [f"rank-{rank}" for rank in range(16)]


def test_steps_of_late_workers_change_the_points_that_were_read_before(tmp_path):
    def done(source, step, compute_s):
        return Stamped(1.0, source, StepDone(step, 10, 10, compute_s, 0.0, 0.0, 0.0))

    events = [done("rank-0", step, 1.0) for step in (1, 2, 3)]
    late = [done("rank-1", step, 2.0) for step in (1, 2, 3, 4)]
    record = RunRecord(tmp_path)
    for stamped in events + late:
        record.update([stamped])
        steps_of(record)
    assert steps_of(record) == steps_of(RunRecord(tmp_path, {}, late + events))
    assert [step.seconds["computing"] for step in steps_of(record)] == [1.5, 1.5, 1.5, 2.0]
    assert [step.sent_bytes for step in steps_of(record)] == [20, 20, 20, 10]
