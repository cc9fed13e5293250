"""Numbers on the command line: one way to read them, and a range for each."""

import argparse
import re

import pytest

from talka.cli.main import build_parser, main
from talka.cli.numbers import count, number, rate, seconds, size
from talka.cli.reference import _with_subcommands
from talka.errors import InvalidValueError


@pytest.mark.parametrize(
    "parse, text, value",
    [
        (count(), "20k", 20_000),
        (count(at_least=0), "0", 0),
        (number(at_least=0, at_most=1), "1", 1.0),
        (number(above=0), "1e-3", 0.001),
        (size(), "1.5GiB", 3 << 29),
        (seconds(), "2min", 120.0),
        (rate(), "100mbit", 1e8),
    ],
)
def test_numbers_are_read_with_their_units(parse, text, value):
    assert parse("--option", text) == value


@pytest.mark.parametrize(
    "parse, text, expected",
    [
        (count(), "0", "--option is 0, but must be a whole number of at least 1."),
        (count(at_most=64), "65", "--option is 65, but must be a whole number from 1 to 64."),
        (count(), "-3", "--option is -3, but must be a whole number of at least 1."),
        (count(), "1.5", "--option is '1.5', but must be a whole number of at least 1."),
        (count(), "many", "--option is 'many', but must be a whole number of at least 1."),
        (number(above=0), "0", "--option is 0.0, but must be a number above 0."),
        (number(at_least=0), "inf", "--option is inf, but must be a number of at least 0."),
        (number(at_least=0, at_most=1), "nan", "--option is nan, but must be a number from 0 to 1."),
        (size(at_least=10**6), "1kB",
         "--option is '1kB', but must be a size such as 25MB or 1.5GiB, of at least 1.00 MB."),
        (seconds(at_least=0.01, at_most=60), "0",
         "--option is '0', but must be a time such as 0.1ms, 5s or 2min, from 10 ms to 60 s."),
        (rate(), "0bit", "--option is '0bit', but must be a rate such as 100mbit or 1gbit, "
         "from 1 bit/s to 1000 Tbit/s."),
    ],
)  # fmt: skip
def test_what_is_outside_of_the_range_is_refused_with_the_range(parse, text, expected):
    with pytest.raises(InvalidValueError) as raised:
        parse("--option", text)
    assert str(raised.value) == expected


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ("graph pagerank edges --supersteps 0", "--supersteps is 0"),
        ("graph pagerank edges --partitions 1001", "--partitions is 1001, but must be .* to 1,000"),
        (
            "graph pagerank edges --partitions 5",
            "--partitions is 5, but must be at most 3, the number",
        ),
        (
            "graph pagerank edges --explain --partitions 5",
            "--partitions is 5, but must be at most 3",
        ),
        ("embed edges --out out --memory 1kB", "--memory is '1kB', .* of at least 1.00 MB"),
        ("probe --seconds 0 --workers 2", "--seconds is '0', .* from 10 ms to 1 h"),
        ("probe --workers 1", "--workers is 1, but must be a whole number from 2 to 64"),
        ("similar vectors word -k 0", "-k is 0, but must be a whole number of at least 1"),
        ("lab --hosts none -- true", "--hosts is 'none', but must be a whole number"),
        ("explain collectives --latency never", "--latency is 'never', but must be a time"),
    ],
)
def test_commands_refuse_what_cannot_be_meant(tmp_path, monkeypatch, capsys, arguments, expected):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "edges").write_text("1 2\n2 3\n")
    words = arguments.split()
    assert main(words) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"talka {words[0]}: ")
    assert len(printed.splitlines()) == 1
    assert re.search(expected, printed), printed


def test_as_many_partitions_as_vertices_are_allowed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "edges").write_text("1 2\n2 3\n")
    assert main(["graph", "bfs", "edges", "--source", "1", "--partitions", "3"]) == 0


def test_no_option_leaves_numbers_to_argparse():
    """argparse would report neither the given nor the allowed value."""
    actions = [
        action
        for parser in _with_subcommands(build_parser())
        for action in parser._actions
        if not isinstance(action, argparse._SubParsersAction)
    ]
    assert not [action.dest for action in actions if action.type in (int, float)]
