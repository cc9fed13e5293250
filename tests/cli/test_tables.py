"""Every table fits 80 columns, and what one copies from it is whole."""

from pathlib import Path

import numpy as np
import pytest

from talka.cli.commands import probe
from talka.cli.main import main
from talka.cli.table_layout import TextTable, lay_out
from talka.cli.tables import print_table
from talka.events import Measured, Predicted, Run
from talka.exchange import CodecRates
from talka.exchange.links.probe import ProbeResult
from talka.jobs.embeddings import Embeddings
from talka.network import COLLECTIVES, EXCHANGES
from talka.train import codec_rates
from talka.train.predictions import DEFAULT_SPECS
from tests.jobs.embeddings.small_text import write_small_text

PAGES = [f"https://example.org/people/{name}/index.html" for name in ("ada", "grace", "edsger")]
SECTIONS = ["capital-common-countries", "gram7-past-tense", "gram1-adjective-to-adverb"]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def shown(monkeypatch, capsys):
    """Run a command in a terminal of this many columns; return its lines, which all fit."""

    def run(*words, columns=80):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert main([str(word) for word in words]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line for line in lines if len(line) > columns] == []
        return lines

    return run


def check_whole(lines, texts):
    """Each text stands in one line, with a gap or an end on either side."""
    for text in texts:
        assert any(f" {text} " in f" {line} " for line in lines), text


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("more", [[], ["--step-seconds", "50ms", "--workers", "8", "--hosts", "2"]])
def test_compressors_can_be_copied(shown, monkeypatch, columns, more):
    rates = CodecRates(4e-10, 3e-10, 2e-10)
    monkeypatch.setattr(codec_rates, "profiled_rates", lambda spec, events: rates)
    lines = shown("explain", "train", "--parameters", "2.9M", *more, columns=columns)
    check_whole(lines, DEFAULT_SPECS)


def test_schemes_can_be_copied(shown):
    lines = shown("explain", "collectives", "--workers", "16", "--hosts", "4")
    check_whole(lines, [*COLLECTIVES, *EXCHANGES])


@pytest.mark.parametrize("algorithm", ["pagerank", "components", "bfs", "degrees"])
def test_vertices_and_parts_can_be_copied(shown, algorithm):
    Path("edges").write_text("".join(f"{one} {other}\n" for one in PAGES for other in PAGES))
    more = ["--source", PAGES[0]] if algorithm == "bfs" else []
    lines = shown("graph", algorithm, "edges", "--partitions", 2, *more)
    if algorithm in ("pagerank", "bfs"):
        check_whole(lines, PAGES)
    check_whole(lines, ["graph/read", "graph/build"])
    lines = shown("graph", algorithm, "edges", "--partitions", 2, *more, "--explain")
    check_whole(lines, ["graph/read", "graph/build"])


def test_costs_of_a_run_can_be_copied(shown):
    part = "graph/superstep/3/exchange"
    reason = "12.3 M mirrors x 8 bytes over links of 100 Mbit/s, after kernels were loaded"
    with Run("costs", {}, root=Path("runs")) as run:
        run.stream.emit(Predicted(part, 12_345_678, 0.123, reason))
        run.stream.emit(Measured(part, 12_345_678, 0.234))
    lines = shown("report", run.dir, "--out", "page.html")
    check_whole(lines, [part, "123 ms", "234 ms"])
    assert reason in " ".join(line.strip() for line in lines)


def test_words_and_sections_can_be_copied(shown):
    words = ["athens", "greece", "oslo", "norway", "incomprehensibilities" * 2]
    Embeddings(words, np.eye(5, dtype=np.float32)).save("vectors")
    check_whole(shown("similar", "vectors", "athens"), words[1:])
    check_whole(shown("analogy", "vectors", "athens", "greece", "oslo"), words[3:])
    Path("questions").write_text(
        "".join(f": {section}\nathens greece oslo norway\n" for section in SECTIONS)
    )
    Path("pairs").write_text("athens greece 9\noslo norway 3\nathens norway 1\n")
    lines = shown("evaluate", "vectors", "questions", "pairs")
    check_whole(lines, [*SECTIONS, "questions", "pairs"])


def test_the_costs_of_embeddings_fit(shown, tmp_path):
    text = write_small_text(tmp_path)
    small = ["--dim", 8, "--epochs", 12, "--threads", 1, "--window", 5]
    lines = shown("embed", text, "--out", "vectors", *small)
    check_whole(lines, ["embed/vocabulary", "embed/cooccurrence", "embed/train"])


@pytest.mark.slow
def test_the_demo_fits(shown):
    lines = shown("demo", "--epochs", 1)
    assert any(line.startswith("more neighbours  talka similar runs/") for line in lines)
    check_whole(lines, ["embed/vocabulary", "embed/cooccurrence", "demo/slices"])


@pytest.mark.usefixtures("lab_works")
def test_hosts_of_a_lab_fit(shown):
    lines = shown("lab", "--hosts", 2, "--ranks-per-host", 20, "--", "true")
    check_whole(lines, ["10.0.0.1", "10.0.0.2", "100 Mbit/s"])


def test_links_between_many_ranks_fit(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    matrix = tuple(tuple(0.0 if a == b else 9.56e7 for b in range(16)) for a in range(16))
    probe._print(ProbeResult(tuple(range(16)), matrix, matrix), "table")
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    rates = lines[: lines.index("One-way latency")]
    assert sum(line.count("95.6 Mbit/s") for line in rates) == 16 * 15


def test_a_file_gets_one_line_per_row(monkeypatch, capsys):
    monkeypatch.delenv("COLUMNS", raising=False)
    print_table([{"part": "read", "why": "because " * 60}], title="costs", prose=("why",))
    assert len(capsys.readouterr().out.splitlines()) == 3


ROWS = [
    {"name": "a" * 30, "time": "1.5 s", "why": "some words"},
    {"name": "b", "time": "20 ms", "why": "x"},
]


@pytest.mark.parametrize(
    "width, expected",
    [
        (80, ["name" + " " * 29 + "time  why", "a" * 30 + "  1.5 s  some words"]),
        (40, ["name" + " " * 29 + "time", "a" * 30 + "  1.5 s", "  some words"]),
        (36, ["name" + " " * 28 + "time", "a" * 30 + " 1.5 s", "  some words"]),
        (20, ["name", "   time", "a" * 30, "  1.5 s", "  some words"]),
    ],
)
def test_what_does_not_fit_moves_below_its_row(width, expected):
    lines = [line.text for line in lay_out(TextTable(ROWS, right=["time"], prose=["why"]), width)]
    assert lines[: len(expected)] == expected


def test_a_row_without_prose_has_no_line_for_it():
    rows = [*ROWS, {"name": "c", "time": "1 s", "why": ""}]
    lines = [line.text for line in lay_out(TextTable(rows, right=["time"], prose=["why"]), 40)]
    assert len(lines) == 1 + 2 + 2 + 1


def test_wide_letters_are_counted_as_two_columns():
    rows = [{"word": "日本", "similarity": "0.9"}, {"word": "tea", "similarity": "0.8"}]
    lines = [line.text for line in lay_out(TextTable(rows, right=["similarity"], prose=[]), 80)]
    assert lines == ["word  similarity", "日本         0.9", "tea          0.8"]
