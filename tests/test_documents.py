"""The documents tell the truth: paths exist, examples run, help is written down."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.chart import chart
from talka.cli.main import COMMANDS, EXIT_CODES, build_parser
from talka.cli.reference import reference

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
SLOW = {"compressed_training.py"}
EXAMPLES = [
    pytest.param(path, marks=pytest.mark.slow if path.name in SLOW else (), id=path.name)
    for path in sorted((ROOT / "examples").glob("*.py"))
]

RECIPES = sorted((ROOT / "examples" / "trainers").glob("*.py"))


def test_every_path_on_the_map_exists_and_every_folder_is_on_it():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    on_map = set(re.findall(r"`(src/talka/[\w/.]+)`", text))
    assert [path for path in sorted(on_map) if not (ROOT / path).exists()] == []
    folders = {
        f"src/talka/{path.parent.name}" for path in (ROOT / "src/talka").glob("*/__init__.py")
    }
    assert sorted(folders - on_map) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_point_at_files_that_exist(document):
    links = re.findall(r"\]\(([^)#:]+)\)", document.read_text())
    assert [link for link in links if not (document.parent / link).exists()] == []


def test_the_command_reference_is_what_the_parser_says():
    written = (ROOT / "docs" / "cli.md").read_text()
    assert written == reference(), "run `make docs`"
    for command in COMMANDS:
        assert f"## `talka {command}`" in written
    assert EXIT_CODES in build_parser().format_help()


def test_the_chart_shows_the_published_results():
    results = ROOT / "benchmarks" / "results" / "slow_network_2xcpu_202611.json"
    assert (ROOT / "docs" / "slow_network.svg").read_text() == chart(
        json.loads(results.read_text())
    )


def test_make_targets_in_the_documents_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        name
        for path in DOCUMENTS
        for name in re.findall(r"(?:`|\$ )make ([a-z-]+)", path.read_text())
    }
    assert named <= targets
    assert {"demo", "test", "quick", "check", "bench"} <= targets


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_runs_and_is_short(example):
    assert len(example.read_text().splitlines()) <= 60
    done = subprocess.run(
        [sys.executable, str(example)], capture_output=True, text=True, timeout=250, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_every_recipe_for_a_trainer_runs_under_torchrun_and_is_short(recipe, tmp_path):
    assert len(recipe.read_text().splitlines()) <= 60
    [command] = re.findall(r"^ *torchrun (.*)$", recipe.read_text(), re.MULTILINE)
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", *shlex.split(command)[:-1], str(recipe)],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == [], "a recipe leaves nothing behind"


def seconds_in(text):
    return re.findall(r"(?<![\d.,])\d+\.\d+(?= s\b)", text)


def test_seconds_in_the_table_of_benchmarks_come_from_published_results():
    """Each fractional figure is a number of a linked table, rounded as the page shows it."""
    text = (ROOT / "docs" / "benchmarks.md").read_text()
    links = re.findall(r"\(\.\./(benchmarks/results/[^)]+)\)", text)
    published = [
        float(number)
        for link in links
        for number in re.findall(r"\d+\.\d+|\d+", (ROOT / link).read_text().replace(",", ""))
    ]
    shown = seconds_in("\n".join(line for line in text.splitlines() if line.startswith("|")))
    assert len(shown) > 5

    def is_published(figure):
        digits = len(figure.partition(".")[2])
        return any(
            f"{number * unit:.{digits}f}" == figure for number in published for unit in (1, 1e-3)
        )

    assert [figure for figure in shown if not is_published(figure)] == []
