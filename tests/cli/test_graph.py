"""`talka graph` with good and bad input.

Most run in this process, which is fast; what happens to whole processes is tested with real ones.
"""

import csv
import gzip
import io
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pyarrow.feather
import pyarrow.parquet
import pytest

from talka.cli.graph_output import SuperstepLines, as_line
from talka.cli.main import main
from talka.events import Measured, read_run
from talka.graph.algorithms import ALGORITHMS
from talka.graph.events import SuperstepDone
from tests.plan_parts import printed_parts
from tests.waiting import wait_until

TALKA = [sys.executable, "-m", "talka.cli.main"]
TIMEOUT_S = 250

# a -> b -> c -> d, and a -> c; e and f on their own
EDGES = "# a comment\na b 1.0\nb c 2.5\na c 9\nc d 1\ne f 1\n"
LEVELS = {"a": 0, "b": 1, "c": 1, "d": 2, "e": None, "f": None}
DISTANCES = {"a": 0.0, "b": 1.0, "c": 3.5, "d": 4.5, "e": None, "f": None}


@pytest.fixture
def talka(tmp_path, monkeypatch, capsys):
    """Run a command in a folder with the file `edges` alone, with its own temp folder."""
    temp, here = tmp_path / "temp", tmp_path / "here"
    temp.mkdir()
    here.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temp))
    monkeypatch.chdir(here)
    Path("edges").write_text(EDGES)

    def run(*arguments):
        code = main(["graph", *(str(argument) for argument in arguments)])
        assert list(temp.iterdir()) == []
        return SimpleNamespace(code=code, **capsys.readouterr()._asdict())

    return run


def answer(done):
    assert (done.code, done.err) == (0, ""), done.err
    return {row["vertex"]: row["value"] for row in json.loads(done.out)["rows"]}


def check_refused(done, expected, *, code=2, left=("edges",)):
    assert done.code == code, done.err
    assert expected in done.err
    assert done.err.startswith("talka graph: ")
    assert len(done.err.splitlines()) == 1, done.err
    assert {path.name for path in Path().iterdir()} <= set(left), "something was left"


class TestAnswers:
    @pytest.mark.parametrize("more", [[], ["--partitions", 3], ["--partitions", 3, "--partitioning", "hash"]])  # fmt: skip
    def test_paths_from_a_source(self, talka, more):
        assert answer(talka("bfs", "edges", "--source", "a", "--format", "json", *more)) == LEVELS
        found = answer(talka("sssp", "edges", "--source", "a", "--format", "json", *more))
        assert found == DISTANCES

    def test_several_sources_and_no_directions(self, talka):
        found = answer(talka("bfs", "edges", "--source", "d", "--source", "e", "--undirected",
                             "--format", "json"))  # fmt: skip
        assert found == {"a": 2, "b": 2, "c": 1, "d": 0, "e": 0, "f": 1}

    def test_ids_that_are_numbers_are_given_as_numbers(self, talka):
        Path("edges").write_text("-7 12\n12 5\n")
        done = talka("bfs", "edges", "--source", "-7", "--format", "json")
        assert answer(done) == {-7: 0, 5: 2, 12: 1}

    def test_pagerank_takes_what_it_is_told(self, talka):
        options = ("--damping", 0.5, "--supersteps", 3, "--format", "json")
        found = answer(talka("pagerank", "edges", *options))
        assert sum(found.values()) == pytest.approx(1)
        assert found != answer(talka("pagerank", "edges", "--format", "json"))
        near = answer(talka("pagerank", "edges", "--source", "e", "--format", "json"))
        assert near["a"] == 0 < near["f"] < near["e"]
        done = json.loads(talka("pagerank", "edges", "--tolerance", 1e-3, "--format", "json").out)
        assert 3 < done["num_supersteps"] < 40

    @pytest.mark.parametrize("name", sorted(set(ALGORITHMS) - {"degrees"}))
    def test_every_algorithm_gives_every_vertex_a_row_in_any_number_of_partitions(
        self, talka, name
    ):
        more = ["--source", "a"] if ALGORITHMS[name].needs_source else []
        whole, cut = (
            answer(talka(name, "edges", *more, "--format", "json", "--partitions", number))
            for number in (1, 3)
        )
        assert list(whole) == list("abcdef")
        assert cut == pytest.approx(whole)

    def test_degrees_are_about_the_whole_graph(self, talka):
        printed = json.loads(talka("degrees", "edges", "--format", "json").out)
        assert (printed["answer"]["num_edges"], printed["answer"]["out"]["max"]) == (5, 2)
        assert talka("degrees", "edges", "--out", "d.json").code == 0
        assert json.loads(Path("d.json").read_text()) == printed["answer"]

    def test_loops_and_duplicates_are_dropped_on_demand(self, talka):
        Path("edges").write_text("1 2\n1 2\n2 2\n")
        kept = json.loads(talka("degrees", "edges", "--format", "json").out)
        drop = ("--drop-duplicates", "--drop-loops")
        dropped = json.loads(talka("degrees", "edges", *drop, "--format", "json").out)
        assert (kept["num_edges"], dropped["num_edges"]) == (3, 1)

    def test_the_format_of_the_file_can_be_said(self, talka):
        Path("edges").write_text("from,to\n1,2\n2,3\n")
        done = talka("bfs", "edges", "--source", 1, "--input-format", "csv", "--format", "json")
        assert answer(done) == {1: 0, 2: 1, 3: 2}

    def test_an_empty_graph_and_a_single_vertex(self, talka):
        Path("edges").write_text("# nothing\n")
        done = talka("pagerank", "edges", "--format", "json")
        assert (done.code, json.loads(done.out)["rows"]) == (0, [])
        assert done.err == "talka: warning: edges has no edges.\n"
        assert talka("components", "edges").err == done.err
        assert talka("components", "edges", "--explain").err == done.err
        Path("edges").write_text("1 1\n")
        assert answer(talka("pagerank", "edges", "--format", "json")) == {1: pytest.approx(1)}


class TestOutput:
    def test_the_ending_decides_and_every_format_has_the_same_rows(self, talka):
        for ending in ("csv", "json", "parquet", "arrow", "feather"):
            done = talka("sssp", "edges", "--source", "a", "--out", f"out.{ending}")
            assert done.code == 0, done.err
            assert f"in out.{ending}," in done.out
        rows = list(csv.DictReader(io.StringIO(Path("out.csv").read_text())))
        parsed = {row["vertex"]: float(row["value"]) if row["value"] else None for row in rows}
        assert parsed == DISTANCES
        as_json = json.loads(Path("out.json").read_text())
        assert {row["vertex"]: row["value"] for row in as_json} == DISTANCES
        tables = [pyarrow.parquet.read_table("out.parquet")]
        tables += [pyarrow.feather.read_table(f"out.{ending}") for ending in ("arrow", "feather")]
        for table in tables:
            assert dict(zip(*table.to_pydict().values(), strict=True)) == DISTANCES

    def test_the_format_wins_over_the_ending_and_is_needed_without_one(self, talka):
        done = talka("bfs", "edges", "--source", "a", "--out", "out", "--format", "json")
        printed = json.loads(done.out)
        assert (printed["out"], printed["num_rows"], "rows" in printed) == ("out", 6, False)
        assert len(json.loads(Path("out").read_text())) == 6
        check_refused(
            talka("components", "edges", "--out", "x.txt"),
            "--out is 'x.txt', but must be a name that ends in .csv",
            left=("edges", "runs", "out"),
        )

    def test_csv_goes_to_standard_output(self, talka):
        done = talka("bfs", "edges", "--source", "a", "--format", "csv")
        rows = list(csv.DictReader(io.StringIO(done.out)))
        assert [row["value"] for row in rows] == ["0", "1", "1", "2", "", ""]

    def test_people_see_what_matters_first(self, talka):
        text = talka("bfs", "edges", "--source", "a").out
        assert "4 of 6 vertices reached, farthest first" in text
        assert text.index("d ") < text.index("b ")
        text = talka("components", "edges").out
        assert "2 components, largest first" in text
        assert "Highest values" in talka("pagerank", "edges").out
        assert "Predicted and measured cost" in text

    def test_a_run_directory_tells_everything(self, talka):
        options = ("--partitions", 2, "--partitioning", "hash", "--supersteps", 4)
        done = json.loads(talka("pagerank", "edges", *options, "--format", "json").out)
        record = read_run(Path(done["run"]))
        assert record.status == "done"
        assert record.config["config"]["partitions"] == 2
        supersteps = [
            entry.event for entry in record.events if isinstance(entry.event, SuperstepDone)
        ]
        assert done["num_supersteps"] == len(supersteps) == 5
        assert done["sent_bytes"] == sum(superstep.sent_bytes for superstep in supersteps) > 0
        assert {"graph/read", "graph/build", "graph/supersteps"} <= set(done["seconds"])

    def test_what_exists_is_replaced_by_force_alone(self, talka):
        Path("out.csv").write_text("mine")
        left = ("edges", "runs", "out.csv")
        check_refused(talka("components", "edges", "--out", "out.csv"), "exists already", left=left)
        assert Path("out.csv").read_text() == "mine"
        assert talka("components", "edges", "--out", "out.csv", "--force").code == 0
        assert Path("out.csv").read_text().startswith('"vertex"')
        assert {path.name for path in Path().iterdir()} == set(left)

    def test_what_exists_stays_when_its_replacement_fails(self, talka):
        Path("out.csv").write_text("mine")
        done = talka("bfs", "edges", "--source", "nobody", "--out", "out.csv", "--force")
        check_refused(done, "no vertex 'nobody'", left=("edges", "out.csv"))
        assert Path("out.csv").read_text() == "mine"

    @pytest.mark.parametrize(
        "where, expected",
        [
            ("nowhere/out.csv", "is in a folder that does not exist"),
            ("edges/out.csv", "is in a folder that does not exist"),
            ("/proc/out.csv", "cannot be written"),
            (f"{'n' * 300}.csv", "too long"),
            ("/tmp", "is a folder"),
        ],
    )
    def test_that_cannot_be_written_is_noticed_before_anything_runs(self, talka, where, expected):
        done = talka("components", "edges", "--out", where, "--format", "csv")
        check_refused(done, expected, left=("edges",))
        assert "cannot write" in done.err


class TestBadInput:
    def test_files_that_are_none(self, talka):
        check_refused(talka("components", "nowhere"), "nowhere")
        Path("edges").write_text("1 2\n2 x y z q\n3 4\n")
        check_refused(talka("components", "edges"), "edges, line 2")
        Path("edges.gz").write_bytes(gzip.compress(b"1 2\n" * 9000)[:-30])
        check_refused(talka("components", "edges.gz"), "damaged", left=("edges", "edges.gz"))

    def test_vertices_that_are_not_there(self, talka):
        check_refused(talka("bfs", "edges", "--source", "z"), "no vertex 'z' in the graph")
        Path("edges").write_text("1 2\n")
        check_refused(talka("sssp", "edges", "--source", "3"), "no vertex 3 in the graph")
        check_refused(talka("sssp", "edges", "--source", "a"), "no vertex 'a' in the graph")

    def test_negative_weights(self, talka):
        Path("edges").write_text("1 2 0.5\n2 3 -1\n")
        done = talka("sssp", "edges", "--source", 1, "--out", "out.csv")
        check_refused(done, "the weight of the edge from 2 to 3 is -1.0, but must be 0 or more")

    @pytest.mark.parametrize(
        "arguments, expected",
        [
            (["pagerang"], "no algorithm named 'pagerang'. Did you mean 'pagerank'?"),
            (["bfs"], "--source is missing. Give the id of the vertex where bfs starts"),
            (["components", "--source", "a"], "it is for bfs, sssp, pagerank"),
            (["bfs", "--source", "a", "--damping", "0.5"], "--damping is not an option of bfs. Remove it: it is for pagerank"),
            (["pagerank", "--damping", "1.5"], "--damping is 1.5, but must be a number from 0 to 1"),
            (["pagerank", "--damping", "nan"], "--damping is nan"),
            (["pagerank", "--tolerance", "0"], "--tolerance is 0.0"),
            (["pagerank", "--supersteps", "-1"], "--supersteps is -1"),
            (["pagerank", "--partitions", "0"], "--partitions is 0"),
            (["pagerank", "--partitioning", "range"], "Did you mean 'ranges'?"),
            (["pagerank", "--engine", "spark"], "--engine is 'spark', but must be embedded, ray or an address such as ray://"),
            (["pagerank", "--engine", "ray://host"], "--engine is 'ray://host'"),
            (["pagerank", "--checkpoint-every", "0"], "--checkpoint-every is 0"),
            (["pagerank", "--format", "parquet"], "must be table, json, csv without --out"),
            (["pagerank", "--input-format", "cvs"], "Did you mean 'csv'?"),
            (["pagerank", "--resume"], "--resume needs --out"),
            (["pagerank", "--resume", "--out", "o.csv"], "it does not hold an unfinished run. Start without --resume"),
            (["degrees", "--out", "o.csv"], "must be json for degrees"),
            (["components", "--partitions", "2", "--partitioning", "vertex_cut"],
             "--partitioning is 'vertex_cut', but must be ranges or hash"),
        ],
    )  # fmt: skip
    def test_options(self, talka, arguments, expected):
        name, *more = arguments
        check_refused(talka(name, "edges", *more), expected)


class TestExplain:
    def test_it_says_what_it_would_cost_and_leaves_nothing(self, talka):
        options = ("--partitions", 3, "--supersteps", 2, "--out", "out.csv", "--explain")
        text = talka("pagerank", "edges", *options).out
        for words in ("6 vertices, 5 edges", "partitions 3", "mirrors", "memory", "superstep/0"):
            assert words in text
        printed = json.loads(talka("pagerank", "edges", *options, "--format", "json").out)
        assert printed["graph"]["num_partitions"] == 3
        supersteps = [f"graph/superstep/{number}" for number in range(3)]
        assert list(printed_parts(printed)) == [
            "graph",
            "graph/start",
            "graph/read",
            "graph/build",
            "graph/compile",
            "graph/supersteps",
            *supersteps,
        ]
        seconds = [part["seconds"] for part in printed["plan"]["parts"]]
        assert printed["total_s"] == pytest.approx(sum(seconds))
        assert {path.name for path in Path().iterdir()} == {"edges"}

    @pytest.mark.parametrize("how", ["ranges", "hash", "vertex_cut"])
    def test_bytes_are_what_was_predicted_where_everybody_speaks(self, talka, how):
        lines = [f"{(n * n) % 97} {(n * 31) % 89}" for n in range(600)]
        Path("edges").write_text("\n".join(lines))
        options = ("--partitions", 4, "--partitioning", how, "--supersteps", 5, "--format", "json")
        printed = json.loads(talka("pagerank", "edges", *options).out)
        rows = [row for row in read_run(Path(printed["run"])).comparisons() if row.predicted]
        sent = {
            row.cost_id: (row.predicted.sent_bytes, row.measured.sent_bytes)
            for row in rows
            if row.cost_id.startswith("graph/superstep/")
        }
        assert list(sent) == [f"graph/superstep/{number}" for number in range(6)]
        assert all(predicted == measured for predicted, measured in sent.values())
        assert sent["graph/superstep/0"][0] > 0


class TestWatching:
    def test_a_superstep_is_a_line(self):
        line = as_line(SuperstepDone(7, 1_200, 300, 2_400, 5_000, 2, 1, 0.25))
        assert line.split() == ["superstep", "7", "active", "1.20", "k", "messages", "300", "sent",
                                "2.40", "kB", "push", "2", "+", "pull", "1", "250", "ms"]  # fmt: skip
        assert " - " in as_line(SuperstepDone(0, 0, 0, 0, 0, 0, 0, 0.0))

    def test_lines_are_rare_enough_to_read(self, capsys):
        lines = SuperstepLines()
        for superstep in range(100):
            lines.show(SuperstepDone(superstep, 0, 0, 0, 0, 0, 0, 0.0))
        lines.show(Measured("graph/read", None, 1.0))
        shown = capsys.readouterr().err.splitlines()
        assert 1 <= len(shown) < 50
        assert shown[0].split()[:2] == ["superstep", "0"]


LONG = ["--supersteps", "1500", "--checkpoint-every", "1", "--partitions", "2"]


def start_long(folder, *more):
    (folder / "edges").write_text(EDGES)
    command = [*TALKA, "graph", "pagerank", "edges", *LONG, "--out", "out.csv", *more]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)


def wait_for_a_checkpoint(process, folder):
    """Until superstep 20 was saved."""

    def is_saved():
        assert process.poll() is None, process.communicate()
        saved = sorted(folder.glob("out.csv.unfinished/superstep-*.checkpoint"))
        return saved and int(saved[-1].stem.removeprefix("superstep-")) >= 20

    wait_until(is_saved, TIMEOUT_S)


@pytest.mark.slow
class TestWholeProcesses:
    def test_a_killed_run_goes_on_and_gives_the_same_bytes(self, tmp_path, monkeypatch, capsys):
        process = start_long(tmp_path)
        wait_for_a_checkpoint(process, tmp_path)
        process.kill()
        process.communicate()
        assert not (tmp_path / "out.csv").exists()
        monkeypatch.chdir(tmp_path)
        assert main(["graph", "pagerank", "edges", *LONG, "--out", "out.csv"]) == 2
        assert "holds an unfinished run. Continue it with --resume" in capsys.readouterr().err
        other = ["--resume", "--damping", "0.5"]
        assert main(["graph", "pagerank", "edges", *LONG, "--out", "out.csv", *other]) == 2
        assert "a run with other options (without --damping)" in capsys.readouterr().err

        resumed = start_long(tmp_path, "--resume", "--checkpoint-every", "1000")
        _, printed = resumed.communicate(timeout=TIMEOUT_S)
        assert (resumed.returncode, printed) == (0, "")
        runs = sorted((tmp_path / "runs").iterdir())
        first = next(entry.event.superstep for entry in read_run(runs[-1]).events if isinstance(entry.event, SuperstepDone))  # fmt: skip
        assert first >= 20, "it continued from the checkpoint"
        assert {path.name for path in tmp_path.iterdir()} == {"edges", "out.csv", "runs"}

        whole = tmp_path / "whole"
        whole.mkdir()
        (whole / "edges").write_text(EDGES)
        monkeypatch.chdir(whole)
        often = ["--checkpoint-every", "1000"]
        assert main(["graph", "pagerank", "edges", *LONG, *often, "--out", "out.csv"]) == 0
        assert (whole / "out.csv").read_bytes() == (tmp_path / "out.csv").read_bytes()

    @pytest.mark.parametrize("how, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    def test_an_interrupted_run_says_how_to_go_on(self, tmp_path, how, code):
        process = start_long(tmp_path)
        wait_for_a_checkpoint(process, tmp_path)
        os.kill(process.pid, how)
        _, printed = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == code
        typed = ["pagerank", "edges", *LONG, "--out", "out.csv"]
        command = ["talka", "graph", "--resume", *typed]
        assert printed.splitlines()[0] == f"talka graph: to continue, run: {shlex.join(command)}"
        assert "Traceback" not in printed
        assert {path.name for path in tmp_path.iterdir()} == {"edges", "out.csv.unfinished", "runs"}

    def test_two_runs_for_one_file_do_not_mix(self, tmp_path):
        process = start_long(tmp_path)
        wait_for_a_checkpoint(process, tmp_path)
        second = start_long(tmp_path, "--force")
        _, printed = second.communicate(timeout=TIMEOUT_S)
        process.kill()
        process.communicate()
        assert second.returncode == 2
        assert "belongs to a run that is still active" in printed
