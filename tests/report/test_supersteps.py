import re
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talka.engine.events import TaskAgain
from talka.events import RunEnded, RunRecord, Stamped
from talka.graph.events import SuperstepDone
from talka.report.page import page
from talka.report.plotting.thinning import MAX_POINTS
from talka.report.superstep_series import Superstep, SuperstepSeries, thinned_supersteps
from talka.report.supersteps import supersteps_section
from tests.report.test_browser import CHROMIUM, look_at, num_bars
from tests.report.test_page import plot

AGAIN = TaskAgain(7, "superstep", "its output was dropped")


def supersteps_of(record):
    return record.fold(SuperstepSeries).supersteps


def record(tmp_path, *events):
    stamped = [Stamped(float(time_s), "driver", event) for time_s, event in enumerate(events)]
    return RunRecord(tmp_path, {}, stamped)


def done(superstep, *, active=10, messages=5, sent_bytes=40, edges=1000, ways=(1, 0), seconds=0.5):
    return SuperstepDone(superstep, active, messages, sent_bytes, edges, *ways, seconds)


def walk(tmp_path):
    """Push, then pull in one partition, then in both; the last superstep walks no edge."""
    return record(
        tmp_path,
        done(0, active=1, messages=3, sent_bytes=24, ways=(2, 0)),
        done(1, active=90, messages=70, sent_bytes=3_000, ways=(1, 1)),
        AGAIN,
        AGAIN,
        done(2, active=40, messages=60, sent_bytes=2_000, ways=(0, 2)),
        done(3, active=0, messages=0, sent_bytes=0, edges=0, ways=(0, 0)),
    )


def text_of(section):
    return re.sub("<.*?>", " ", section.body.split("<h3>")[0])


def test_a_run_without_supersteps_has_no_such_section(tmp_path):
    assert supersteps_section(record(tmp_path, AGAIN, RunEnded("done"))) is None


def test_it_says_totals_ways_and_what_ran_again(tmp_path):
    text = text_of(supersteps_section(walk(tmp_path)))
    assert "4 supersteps in 2 s: 1 pushed, 1 pulled, 1 did both." in text
    assert "3.00 k edges were traversed, 1.50 k per second." in text
    assert "Partitions sent each other 5.02 kB, most of it in superstep 1 (3.00 kB)." in text
    assert "2 tasks ran again after a loss." in text


def test_it_stands_on_the_page_with_its_four_plots(tmp_path):
    text = page(walk(tmp_path))
    assert "<h2>Supersteps</h2>" in text
    for name, values in [
        ("frontier", [1, 40, 90, 0]),
        ("messages", [3, 60, 70, 0]),
        ("bytes", [24, 2_000, 3_000, 0]),
        ("seconds", [0.5] * 4),
    ]:
        *bars, again = plot(text, f"superstep-{name}")
        assert [one["x"] for one in bars] == [[0], [2], [1], [3]], "push, pull, both, neither"
        assert [one["y"] for one in bars] == [[value] for value in values]
        assert len({one["marker"]["color"] for one in bars}) == 4
        assert (again["name"], again["x"], again["y"]) == ("tasks ran again", [2], [values[1]])
        assert again["customdata"] == ["2 tasks"]


def test_in_one_partition_nothing_travels_and_nothing_of_it_is_drawn(tmp_path):
    alone = record(tmp_path, done(0, messages=0, sent_bytes=0), done(1, messages=0, sent_bytes=0))
    section = supersteps_section(alone)
    assert "Nothing was sent between partitions." in text_of(section)
    assert "superstep-frontier" in section.body
    assert "superstep-messages" not in section.body
    assert "superstep-bytes" not in section.body
    assert "ran again" not in section.body


def test_supersteps_that_took_no_time_are_no_error(tmp_path):
    empty = done(0, active=0, messages=0, sent_bytes=0, edges=0, seconds=0.0)
    text = text_of(supersteps_section(record(tmp_path, empty)))
    assert "1 superstep in 0 ms" in text


def test_a_second_program_goes_on_counting_and_a_resumed_one_begins_where_it_did(tmp_path):
    two = record(tmp_path, *(done(n) for n in (5, 6, 7, 0, 1, 0)))
    assert [one.number for one in supersteps_of(two)] == [5, 6, 7, 8, 9, 10]


def test_what_ran_again_counts_for_the_superstep_that_waited_for_it(tmp_path):
    found = supersteps_of(record(tmp_path, AGAIN, done(0), done(1), AGAIN, AGAIN, done(2), AGAIN))
    assert [one.num_again for one in found] == [1, 0, 2]


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from(["push", "pull", "other"]), st.integers(0, 2)),
        max_size=60,
    ),
    st.integers(1, 12),
)
def test_thinned_supersteps_are_means_of_neighbours(seen, max_bars):
    supersteps = [
        Superstep(number, value, value, 8 * value, value, value / 4, way, again)
        for number, (value, way, again) in enumerate(seen)
    ]
    few = thinned_supersteps(supersteps, max_bars=max_bars)
    assert len(few) <= max_bars
    size = -(-len(supersteps) // max_bars)
    for index, one in enumerate(few):
        group = supersteps[index * size : (index + 1) * size]
        assert one.number == fmean(member.number for member in group)
        assert one.sent_bytes == fmean(member.sent_bytes for member in group)
        ways = {member.way for member in group} - {"other"}
        assert one.way == (ways.pop() if len(ways) == 1 else "both" if ways else "other")
    assert sum(one.num_again for one in few) == sum(one.num_again for one in supersteps)


def test_very_many_supersteps_are_drawn_as_few_and_the_page_says_so(tmp_path):
    body = supersteps_section(record(tmp_path, *(done(n) for n in range(1_234)))).body
    assert "1,234 supersteps, drawn as 412 means of neighbours." in body
    assert len(plot(body, "superstep-seconds")[0]["x"]) == 412 <= MAX_POINTS


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium to look at the page with")
def test_a_browser_draws_every_bar(tmp_path):
    path = tmp_path / "page.html"
    path.write_text(page(walk(tmp_path)))
    seen = look_at(path, tmp_path)
    assert seen.console == seen.requests == []
    for name in ("frontier", "messages", "bytes", "seconds"):
        assert num_bars(seen.dom, f"superstep-{name}") == 4
