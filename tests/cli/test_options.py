"""One vocabulary of options in all commands; former names work with a warning."""

import inspect
import json

import pytest

from talka.cli.commands.graph import INPUT_FORMATS
from talka.cli.main import build_parser, main
from talka.cli.options import FORMATS, MEANINGS
from talka.cli.reference import NAMES_IN_PYTHON, _with_subcommands
from talka.graph import Graph, RunOptions
from talka.graph.reading.detect import READERS
from talka.jobs.embeddings.vectors import Neighbour
from talka.jobs.graph import Arguments, Input, Placement


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "edges").write_text("1,2\n2,3\n")


def options():
    """(command, option) of all that the help shows."""
    return [
        (parser, action)
        for parser in _with_subcommands(build_parser())
        for action in parser._actions
        if action.option_strings
    ]


def test_a_shared_option_has_the_same_help_in_every_command():
    seen = set()
    for _, action in options():
        name = action.option_strings[0]
        if name in MEANINGS:
            assert action.help.startswith(MEANINGS[name])
            seen.add(name)
    assert seen == set(MEANINGS)


def test_formats_have_the_same_names_in_every_command():
    for _, action in options():
        if action.option_strings == ["--format"]:
            assert action.choices == FORMATS[: len(action.choices)]


def test_the_help_names_every_format_that_can_be_read():
    assert tuple(READERS) == INPUT_FORMATS


def test_text_is_a_former_name_of_table(capsys):
    assert main(["explain", "collectives", "--format", "text"]) == 0
    former = capsys.readouterr()
    assert former.err == ("talka: warning: --format text is deprecated, use --format table.\n")
    assert main(["explain", "collectives", "--format", "table"]) == 0
    now = capsys.readouterr()
    assert (now.out, now.err) == (former.out, "")


def test_the_format_of_the_input_has_a_former_name(capsys):
    words = ["--source", "1", "--format", "json"]
    for name, expected in {
        "--format-of-file": "talka: warning: --format-of-file is deprecated, use --input-format.\n",
        "--input-format": "",
    }.items():
        assert main(["graph", "bfs", "edges", name, "csv", *words]) == 0
        printed = capsys.readouterr()
        assert printed.err == expected
        assert len(json.loads(printed.out)["rows"]) == 3


def test_compressors_have_a_former_name(capsys):
    words = ["--spec", "fp16", "--compressor", "none", "--spec", "bf16", "qsgd:7"]
    args = build_parser().parse_args(["explain", "train", *words])
    assert args.compressor == ["fp16", "none", "bf16", "qsgd:7"]
    assert capsys.readouterr().err.count("--spec is deprecated") == 2


def test_names_in_python_exist():
    """The table in docs/cli.md."""
    known = {
        *inspect.signature(RunOptions).parameters,
        *inspect.signature(Placement).parameters,
        *inspect.signature(Arguments).parameters,
        *inspect.signature(Input).parameters,
        *inspect.signature(Graph.from_edges).parameters,
        *Neighbour._fields,
        "compressor",
    }
    shown = {name for _, action in options() for name in action.option_strings}
    for option, name in NAMES_IN_PYTHON.items():
        assert option.split()[0] in shown or not option.startswith("--")
        assert name.partition("=")[0] in known
