import html
import json
import os
import re
from pathlib import Path

import pytest

from talka.engine.events import RankLost, TasksRan
from talka.errors import OutputError, RunDirectoryError
from talka.events import Measured, Run, Stream, read_run
from talka.plans import Alternative, Part
from talka.report import SECTIONS, PageSection, ReportSection, write_report
from talka.report.page import page
from tests.report.samples import (
    EVIL,
    NUM_RANKS,
    kill,
    write_evil_run,
    write_run,
    write_unfinished_run,
)


@pytest.fixture
def run_dir(tmp_path) -> Path:
    return write_run(tmp_path)


def own_part(path: Path) -> str:
    """The page without plotly's script, which is the first one."""
    return re.sub(r"<script>/\*\*\n\* plotly.*?</script>", "", path.read_text(), flags=re.DOTALL)


def plot(text: str, name: str) -> list[dict]:
    """The traces of one plot."""
    after = text.split(f'"plot-{name}",', maxsplit=1)[1]
    traces, _ = json.JSONDecoder().raw_decode(after.lstrip())
    return traces


def test_the_page_lies_in_the_run_unless_another_place_is_given(run_dir, tmp_path):
    assert write_report(run_dir) == run_dir / "report.html"
    assert write_report(run_dir, tmp_path / "a.html") == tmp_path / "a.html"
    assert (run_dir / "report.html").read_bytes() == (tmp_path / "a.html").read_bytes()


def test_the_page_brings_its_script_once_and_asks_for_nothing_else(run_dir):
    path = write_report(run_dir)
    assert path.read_text().count("* plotly.js (basic - minified) v") == 1
    assert path.stat().st_size < 1_500_000
    text = own_part(path)
    assert re.findall(r"""(?:src|href)=|url\(|@import|https?://""", text) == []


class TestADoneRun:
    def test_says_how_it_ended_and_how_long_it_took(self, run_dir):
        text = own_part(write_report(run_dir))
        assert '<span class="badge done">done</span>' in text
        assert "19.7 s" in text

    def test_sums_up_what_it_used(self, run_dir):
        tiles = re.findall(r"<dd>(.*?)</dd><dt>(.*?)</dt>", own_part(write_report(run_dir)))
        assert tiles == [
            ("93.4 MB", "sent"),
            ("1.44 k", "tasks run"),
            ("18", "tasks run again"),
            ("1.25 GB", "spilled to disk"),
            ("1", "workers lost"),
        ]

    def test_shows_config_result_and_versions(self, run_dir):
        facts = dict(
            re.findall(
                r"<tr><th>(.*?)</th><td class=.*?>(.*?)</td>", own_part(write_report(run_dir))
            )
        )
        assert facts["link.rate_bits_per_s"] == "100 Mbit/s"
        assert facts["compressor"] == "topk:0.01+ef"
        assert facts["num_words"] == "16,300,000"
        assert facts["train_s"] == "6.4 s"
        assert {"host", "cores", "python", "talka", "numpy"} <= facts.keys()

    def test_puts_predicted_beside_measured(self, run_dir):
        text = own_part(write_report(run_dir))
        row = re.search(r"<tr><td[^>]*><code>graph</code>.*?</tr>", text)
        assert row is not None
        cells = [html.unescape(re.sub("<.*?>", "", cell)) for cell in row[0].split("</td>")]
        assert cells[:7] == ["graph", "3 s", "4 s", "1.33x", "26.0 MB", "81.0 MB", "3.12x"]

    def test_plots_seconds_and_bytes_of_both_sides(self, run_dir):
        text = own_part(write_report(run_dir))
        predicted, measured = plot(text, "bytes-sent")
        assert (predicted["name"], predicted["x"]) == ("predicted", [4.2e6, 2.6e7, 8e6])
        assert (measured["name"], measured["x"]) == ("measured", [4.4e6, 8.1e7, 8e6])
        assert plot(text, "seconds")[0]["y"] == plot(text, "seconds")[1]["y"]

    def test_draws_a_row_per_writer_and_worker(self, run_dir):
        traces = plot(own_part(write_report(run_dir)), "timeline")
        rows = {row for trace in traces for row in trace["y"]}
        ranks = {f"rank-{rank}{inner}" for rank in range(NUM_RANKS) for inner in ("", " (inner)")}
        assert rows == {"driver", "worker-0", "worker-1"} | ranks

    def test_draws_one_trace_per_kind_of_work(self, run_dir):
        traces = plot(own_part(write_report(run_dir)), "timeline")
        names = [trace["name"] for trace in traces]
        assert len(names) == len(set(names))
        assert {"read_lines", "split", "train", "step", "step/exchange", "worker lost"} <= set(
            names
        )

    def test_shows_how_busy_each_worker_was(self, run_dir):
        text = own_part(write_report(run_dir))
        assert "Busy share per worker" in text
        assert len(re.findall(r'<div class="share"><div style="width:6\d\.\d%">', text)) == 2

    def test_groups_tasks_that_ran_again_by_reason(self, run_dir):
        text = own_part(write_report(run_dir))
        assert re.search(r">merge<.*?>17<.*?its output was on worker-1", text)


def test_a_rank_that_was_lost_is_shown_where_troubles_are(tmp_path):
    with Run("gang", {}, root=tmp_path) as run:
        run.stream.emit(RankLost(3, "server", "died (exit code 7)"))
    text = own_part(write_report(run.dir))
    troubles = text[text.index("What went wrong") :]
    assert re.search(r"<code>rank 3 \(server\)</code>.*?died \(exit code 7\)", troubles, re.DOTALL)
    assert "<dd>1</dd><dt>workers lost</dt>" in text


def test_a_failed_run_shows_its_error_with_the_traceback_folded_away(tmp_path):
    text = own_part(write_report(write_run(tmp_path, error="rank 2 sent 3 bytes")))
    assert '<p class="message">rank 2 sent 3 bytes</p>' in text
    assert re.search(r"<details><summary>.*SampleError: rank 2 sent.*</details>", text, re.DOTALL)
    assert '<span class="badge failed">' in text
    assert "<h3>Result</h3>" not in text


def test_a_running_run_is_shown_as_far_as_it_is(tmp_path):
    text = own_part(write_report(write_unfinished_run(tmp_path)))
    assert '<span class="badge running">' in text
    assert "3 s up to its last event" in text
    assert "count (did not end)" in text


def test_a_killed_run_says_so_and_counts_its_half_line(tmp_path):
    run_dir = write_unfinished_run(tmp_path)
    kill(run_dir)
    text = own_part(write_report(run_dir))
    assert '<span class="badge killed">' in text
    assert "Lines of the event files that could not be read: 1" in text


def test_a_run_without_a_driver_is_shown_from_its_ranks(tmp_path):
    for rank in range(2):
        stream = Stream(tmp_path / f"events.rank-{rank}.jsonl")
        with stream.phase("step"):
            pass
        stream.close()
    text = own_part(write_report(tmp_path))
    assert f"<h1>{tmp_path.name}</h1>" in text
    assert plot(text, "timeline")[0]["y"] == ["rank-0", "rank-1"]


def test_a_run_that_said_nothing_has_a_small_page_without_plots(tmp_path):
    with Run("empty", {}, root=tmp_path) as run:
        pass
    path = write_report(run.dir)
    assert path.stat().st_size < 20_000
    text = path.read_text()
    assert "Nothing was predicted or measured in this run." in text
    assert "Timeline" not in text
    assert "What went wrong" not in text


def test_no_text_of_a_run_becomes_a_part_of_the_page(tmp_path):
    text = own_part(write_report(write_evil_run(tmp_path)))
    assert "<script>document.title" not in text
    assert "<img" not in text
    assert html.escape(EVIL) in text


@pytest.mark.parametrize(
    "config", [{}, {"config": 3, "versions": [], "command": "x", "started_s": "noon", "name": 1}]
)
def test_a_config_of_unexpected_shape_does_not_stop_the_report(run_dir, config):
    (run_dir / "config.json").write_text(json.dumps(config))
    assert "Predicted beside measured" in own_part(write_report(run_dir))


def test_many_parts_are_cut_in_table_and_plot_and_the_page_says_so(tmp_path):
    with Run("many", {}, root=tmp_path) as run:
        for index in range(300):
            run.stream.emit(Measured(f"superstep/{index}", float(index), 1.0))
    text = own_part(write_report(run.dir))
    assert "100 more costs" in text
    assert "The 30 largest of 300 costs." in text
    assert len(plot(text, "bytes-sent")[1]["y"]) == 30


def test_parts_whose_long_names_begin_alike_keep_their_own_rows(tmp_path):
    with Run("long", {}, root=tmp_path) as run:
        for name in ("0", "1", "x" * 60 + "/a", "x" * 60 + "/b"):
            run.stream.emit(Measured(name, None, 1.0))
    rows = plot(own_part(write_report(run.dir)), "seconds")[1]["y"]
    assert len(set(rows)) == 4


def test_many_workers_are_cut_in_the_timeline_and_the_page_says_so(tmp_path):
    with Run("wide", {}, root=tmp_path) as run:
        for index in range(100):
            run.stream.emit(TasksRan("map", f"worker-{index}", 1, 1.0, 2.0, 1.0, 1))
    text = own_part(write_report(run.dir))
    assert "The first 64 of 100 rows." in text
    assert plot(text, "timeline")[0]["y"] == [f"worker-{index}" for index in range(64)]


def test_a_pillar_adds_a_section_to_the_pages_of_runs_with_its_events(run_dir):
    def frontier_section(record):
        return ReportSection("Frontier <per superstep>", f"<p>{len(record.events)} events</p>")

    record = read_run(run_dir)
    for pillar, is_shown in [("", True), ("train", True), ("graph", False)]:
        section = PageSection(frontier_section, pillar=pillar)
        text = page(record, sections=(*SECTIONS, section))
        assert ("<h2>Frontier &lt;per superstep&gt;</h2><p>" in text) == is_shown


def test_a_page_that_cannot_be_made_leaves_the_old_one(run_dir, monkeypatch):
    path = write_report(run_dir)
    before = path.read_bytes()
    monkeypatch.setattr("talka.report.page.STYLE", "half a surrogate pair: \ud800")
    with pytest.raises(UnicodeEncodeError):
        write_report(run_dir)
    assert path.read_bytes() == before
    assert not list(run_dir.glob(".*"))


@pytest.mark.parametrize(
    "out, problem",
    [
        (".", "is a folder"),
        ("/dev/null", "is not an ordinary file"),
        ("missing/report.html", "is not in an existing folder"),
        ("file/report.html", "is not in an existing folder"),
        ("x" * 300, "File name too long"),
    ],
)
def test_a_place_that_cannot_be_written_is_an_error_that_says_why(run_dir, tmp_path, out, problem):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=problem):
        write_report(run_dir, tmp_path / out)


def test_a_device_is_not_replaced_by_the_page(run_dir, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OutputError, match="is not an ordinary file"):
        write_report(run_dir, pipe)
    assert pipe.is_fifo()


def test_a_folder_that_is_no_run_is_an_error(tmp_path):
    with pytest.raises(RunDirectoryError, match="is not a run"):
        write_report(tmp_path)


def test_kinds_that_nobody_registered_are_listed_under_their_names(run_dir):
    with (run_dir / "events.jsonl").open("a") as file:
        for _ in range(3):
            file.write(json.dumps({"event": "<b>New", "time_s": 1.8e9, EVIL: [1], "x": 2}) + "\n")
    text = own_part(write_report(run_dir))
    row = f'<code>&lt;b&gt;New</code></td><td class="number">3</td><td class="long">{html.escape(EVIL)}, x'
    assert "<h2>Other events</h2>" in text
    assert row in text
    assert "could not be read" not in text


def test_lost_choices_and_memory_of_a_plan_are_shown(tmp_path):
    lost = Alternative("tree", "takes longer", seconds=2.0, sent_bytes=9e6)
    part = Part(cost_id="train/step", memory_bytes=5e8, choice="ring", alternatives=(lost,))
    with Run("train", {}, root=tmp_path) as run:
        for event in part.events():
            run.stream.emit(event)
    text = own_part(write_report(run.dir))
    assert "Other choices of the plan" in text
    assert re.search(r">tree<.*>2 s<.*>9.00 MB<.*takes longer", text)
    assert "500 MB" in text
    with Run("train", {}, root=tmp_path) as run:
        pass
    assert "Other choices" not in own_part(write_report(run.dir))
