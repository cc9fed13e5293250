"""The section of rounds: who waited for whom, and what the timeline draws."""

import itertools
import random
import re
import xml.etree.ElementTree as ElementTree

import pytest

from benchmarks.timelines import chart
from talka.events import RunEnded, RunRecord, Stamped
from talka.report.page import page
from talka.report.rounds import series as series_module
from talka.report.rounds.section import MAX_DRAWN, rounds_section
from talka.report.rounds.series import MAX_RECENT, RoundKey, RoundSeries
from talka.report.rounds.spans import spans_of
from talka.train.events import RoundDone, StepDone
from tests.report.test_page import plot


def done(number, *, compute_s=0.5, wait_s=0.25, staleness=0, num_steps=50, after_s=None):
    """A round that encodes for 0.1 s and decodes for 0.05 s."""
    seconds = (compute_s, 0.1, wait_s, 0.05, after_s)
    return RoundDone("local-sgd", number, num_steps, staleness, 100, 100, *seconds)


def stamped(source, number, *, end_s=None, **options):
    return Stamped(10.0 * number if end_s is None else end_s, source, done(number, **options))


def record(tmp_path, events):
    return RunRecord(tmp_path, {}, events)


def slow_rank_1(num_rounds=5):
    """Rank 1 computes 0.4 s longer than rank 0, which waits for it."""
    for number in range(1, num_rounds + 1):
        yield stamped("rank-0", number, compute_s=0.5, wait_s=0.6)
        yield stamped("rank-1", number, compute_s=0.9, wait_s=0.2)


def folded(events):
    series = RoundSeries()
    for each in events:
        series.add(each)
    return series


def text_of(section):
    return re.sub(r"\s+", " ", re.sub("<.*?>", " ", section.body.split("<h3>")[0]))


def test_a_run_without_rounds_has_no_such_section(tmp_path):
    assert rounds_section(record(tmp_path, [Stamped(1.0, "driver", RunEnded("done"))])) is None


def test_the_worker_with_the_smallest_wait_is_the_one_that_others_waited_for(tmp_path):
    text = text_of(rounds_section(record(tmp_path, slow_rank_1())))
    assert "2 workers had 5 rounds of local-sgd, with 50 steps each" in text
    assert "sent 1.00 kB in all, 100 B per worker and round" in text
    assert "waited 200 ms for the network and 200 ms for others" in text
    assert "most often for rank-1 (100% of the rounds)" in text
    assert "rank-0 500 ms 100 ms 400 ms 200 ms 50 ms 0 of 4 500 B" in text
    assert "rank-1 900 ms 100 ms 0 ms 200 ms 50 ms 4 of 4 500 B" in text


def test_steps_are_rounds_and_staleness_is_named(tmp_path):
    step = Stamped(1.0, "rank-0", StepDone(1, 100, 100, 0.5, 0.1, 0.3, 0.1))
    text = text_of(rounds_section(record(tmp_path, [step])))
    assert "1 worker had 1 round of every-step, with 1 step each" in text
    assert "others" not in text.split("Mean seconds")[0]
    late = [stamped("rank-0", number, staleness=2, num_steps=1) for number in (1, 2)]
    assert "Averages were applied 2 steps late." in text_of(rounds_section(record(tmp_path, late)))


def test_the_page_has_a_timeline_with_a_trace_for_each_kind_of_work(tmp_path):
    text = page(record(tmp_path, slow_rank_1()))
    assert "<h2>Rounds</h2>" in text
    traces = {trace["name"]: trace for trace in plot(text, "round-timeline")}
    assert list(traces) == ["computing", "encoding", "waiting for others", "network", "decoding"]
    assert traces["waiting for others"]["y"] == ["rank-0"] * 4, "the first round has the start"
    assert traces["waiting for others"]["x"] == pytest.approx([0.4] * 4)
    assert traces["computing"]["y"] == ["rank-0"] * 4 + ["rank-1"] * 4
    first, second = plot(text, "round-waits")
    assert (first["x"], first["y"]) == ([2, 3, 4, 5], pytest.approx([0.4] * 4))
    assert second["y"] == pytest.approx([0.0] * 4)


def test_spans_follow_one_another_and_overlap_only_where_the_event_says_so():
    [plain] = folded([stamped("rank-0", 1, end_s=9.0)]).rounds()
    spans = {span.work: (span.start_s, span.end_s) for span in spans_of([plain])}
    assert spans["decoding"] == pytest.approx((8.95, 9.0))
    assert spans["network"] == pytest.approx((8.7, 8.95))
    assert spans["encoding"] == pytest.approx((8.6, 8.7))
    assert spans["computing"] == pytest.approx((8.1, 8.6))
    assert "waiting for others" not in spans
    [overlapping] = folded([stamped("rank-0", 1, end_s=9.0, after_s=0.1)]).rounds()
    computing = next(span for span in spans_of([overlapping]) if span.work == "computing")
    assert (computing.start_s, computing.end_s) == pytest.approx((8.4, 8.9))


def test_spans_of_a_lane_never_overlap():
    seeded = random.Random(0)
    events = [
        stamped(
            f"rank-{rank}",
            number,
            end_s=0.3 * number + seeded.random() * 0.2,
            compute_s=seeded.random(),
            wait_s=seeded.random(),
            after_s=seeded.choice([None, seeded.random()]),
        )
        for rank in range(3)
        for number in range(1, 20)
    ]
    spans = spans_of(folded(events).window(["rank-0", "rank-1", "rank-2"], 16))
    assert spans
    for rank, computes in itertools.product(range(3), (True, False)):
        lane = sorted(
            (span.start_s, span.end_s)
            for span in spans
            if span.worker == f"rank-{rank}" and (span.work == "computing") == computes
        )
        for before, after in itertools.pairwise(lane):
            assert before[1] <= after[0] + 1e-9


def test_the_order_of_writers_does_not_matter(monkeypatch):
    monkeypatch.setattr(series_module, "MAX_ROUNDS", 16)
    by_source = {
        f"rank-{rank}": [stamped(f"rank-{rank}", n, wait_s=n + rank) for n in range(1, 101)]
        for rank in range(3)
    }
    by_source["rank-1"] += [stamped("rank-1", n) for n in range(1, 31)]  # restarts
    by_source["rank-0"] += [stamped("rank-0", n) for n in range(1, 31)]
    one_by_one = folded(each for events in by_source.values() for each in events)
    seeded, left, mixed = random.Random(1), {k: list(v) for k, v in by_source.items()}, []
    while left:
        source = seeded.choice(list(left))
        mixed.append(left[source].pop(0))
        left = {name: events for name, events in left.items() if events}
    other = folded(mixed)
    assert other.rounds() == one_by_one.rounds()
    assert other.num_rounds == one_by_one.num_rounds == {"local-sgd": 130}
    assert len(other.rounds()) <= 16
    assert {len(each.workers) for each in other.rounds() if each.key.part == 0} == {3}
    assert max(each.key for each in other.rounds()).part == 1


def test_a_long_run_takes_little_memory_and_totals_stay_exact(monkeypatch, tmp_path):
    monkeypatch.setattr(series_module, "MAX_ROUNDS", 64)
    read = record(tmp_path, slow_rank_1(1000))
    series = read.fold(RoundSeries)
    assert 32 <= len(series.rounds()) <= 64
    assert series.totals["rank-0"].sent_bytes == 100_000
    assert len(series.window(series.workers, 1000)) == MAX_RECENT
    text = text_of(rounds_section(read))
    assert "1,000 rounds" in text
    assert "From every 16th round" in text


def test_the_window_ends_with_the_last_round_that_all_have_finished():
    events = [stamped("rank-0", n) for n in range(1, 9)]
    events += [stamped("rank-1", n) for n in range(1, 6)]
    window = folded(events).window(["rank-0", "rank-1"], 3)
    assert [each.key for each in window] == [RoundKey(0, number) for number in (3, 4, 5)]


def test_the_worker_that_others_wait_for_is_drawn_among_many(tmp_path):
    events = [
        stamped(f"rank-{rank}", number, wait_s=0.1 if rank == 20 else 0.5)
        for number in (1, 2)
        for rank in range(30)
    ]
    traces = plot(rounds_section(record(tmp_path, events)).body, "round-timeline")
    assert len(set(traces[0]["y"])) == MAX_DRAWN
    assert "rank-20" in traces[0]["y"]


def test_the_svg_of_the_docs_has_a_bar_for_each_span():
    series = folded(slow_rank_1())
    root = ElementTree.fromstring(chart(series, title="Two workers & a <round>", max_rounds=2))
    bars = root.findall("{http://www.w3.org/2000/svg}rect")
    legend_and_page = 6
    assert len(bars) - legend_and_page == len(spans_of(series.window(series.workers, 2))) == 18
    assert chart(RoundSeries(), title="", max_rounds=2) is None
