"""Typing errors are answered by one or two lines that suggest the nearest valid word."""

import subprocess
import sys

import pytest

from talka.cli.main import build_parser, main
from talka.cli.reference import _with_subcommands


def error_for(capsys, line):
    """Return what is printed on standard error for a rejected command line."""
    assert main(line.split()) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) <= 2
    assert "usage:" not in printed.err
    return printed.err


@pytest.mark.parametrize(
    "line, expected",
    [
        ("grpah pagerank edges", "talka: no command named 'grpah'. Did you mean 'graph'? Known: demo,"),
        ("explain colectives", "talka explain: no topic named 'colectives'. Did you mean 'collectives'?"),
        ("graph pagerank edges --partions 3", "no option named '--partions'. Did you mean '--partitions'?"),
        ("graph pagerank edges --damp=0.5 --qqq", "no option named '--qqq'. See `talka graph --help`"),
        ("embed text --ot out", "no option named '--ot'. Did you mean '--out'?"),
        ("--verson", "talka: no option named '--verson'. Did you mean '--version'?"),
        ("graph pagerank edges --format jsn", "--format is 'jsn', but must be table, json, csv, "
         "parquet or arrow. Did you mean 'json'?"),
        ("embed text --out o --parallel thread", "Did you mean 'threads'?"),
        ("embed text --out o --tokenizer word", "Did you mean 'words'?"),
        ("graph pagerank edges --engine embeded", "Did you mean 'embedded'?"),
        ("graph pagerank edges --partitioning has", "Did you mean 'hash'?"),
        ("graph pagerang edges", "Did you mean 'pagerank'?"),
        ("explain train --parameters 9 --compressor tokp:0.1", "'topk:0.1', the nearest"),
        ("explain train --parameters 9 --compressor powersdg:4", "'powersgd:4', the nearest"),
        ("embed text", "missing: --out. See `talka embed --help`."),
        ("graph bfs", "missing: EDGES."),
        ("lab --rate -- train --lr 3", "--rate needs a value: RATE."),
        ("embed text --out", "--out needs a value: DIR."),
        ("graph bfs edges more", "unexpected argument: more."),
        ("graph bfs edges --part 2", "--part is ambiguous: it could mean --partitions, --partitioning."),
        ("graph bfs edges --undirected=yes", "--undirected takes no value, but got 'yes'."),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_what_to_type(capsys, line, expected):
    assert expected in error_for(capsys, line)


@pytest.mark.parametrize(
    "address, expected",
    [
        ("ray://HOST:PORT", "but HOST:PORT stands for the address of a Ray cluster"),
        ("ray://head", "which has no address of a Ray cluster after ray://"),
        ("ray://:6379", "which has no address of a Ray cluster after ray://"),
    ],
)
def test_a_wrong_address_is_answered_with_an_example(capsys, address, expected):
    printed = error_for(capsys, f"graph pagerank edges --engine {address}")
    assert f"--engine is '{address}', {expected}. Give a host and the number of its port" in printed
    assert "such as ray://10.0.0.5:6379" in printed
    assert "must be" not in printed


@pytest.mark.parametrize(
    "line",
    [
        "graph bfs edges",
        "graph components edges --source 1",
        "graph components edges --damping 0.5",
        "graph pagerank edges --resume",
        "explain train",
        "explain train --parameters 9 --model a.py:b",
        "probe",
        "lab",
    ],
)
def test_no_message_shows_a_value_that_nobody_typed(capsys, monkeypatch, line):
    monkeypatch.delenv("RANK", raising=False)
    printed = error_for(capsys, line)
    assert not [word for word in ("None", "True", "False", "(", "[") if word in printed], printed


def test_a_misspelt_compressor_is_reported_before_torch_is_loaded():
    code = (
        "import sys; from talka.cli.main import main;"
        "code = main('explain train --parameters 2.9M --compressor onbit+ef'.split());"
        "sys.exit(3 if 'torch' in sys.modules else code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "'onebit+ef', the nearest" in done.stderr


def test_all_commands_use_this_parser_and_show_no_former_names():
    for parser in _with_subcommands(build_parser()):
        assert type(parser) is type(build_parser())
        for former in ("--spec", "--format-of-file", "{text"):
            assert former not in parser.format_help()
