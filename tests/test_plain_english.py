"""The check for plain English finds what it is made for, and leaves code and good text alone."""

import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "plain_english.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("plain_english", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rules(tool, folder, text, *, name="module.py"):
    path = folder / name
    path.write_text(text)
    return [place.rule for place in tool.places_in(path)]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('"""Of each output."""\n', "fragment"),
        ('"""Return what a worker says."""\n', "speech"),
        ('"""Return it to whoever asks."""\n', "person"),
        ("x = 1  # this is no number\n", "is no"),
        ("x = 1  # zero if it is empty, else the mean\n", "else"),
        ("x = 1  # the loop goes on\n", "goes on"),
        ('raise ValueError("the file is no text at all")\n', "message: is no"),
        ("said = 1\n", "name"),
    ],
)
def test_odd_text_is_found(tool, tmp_path, text, rule):
    assert rules(tool, tmp_path, text) == [rule]


@pytest.mark.parametrize(
    "text",
    [
        '"""Return the number of workers, or None if it is not known."""\n',
        '"""Return `said` unchanged."""\n',
        "x = 1 if y else 2\n",
        "x = 1  # there is no need for a lock\n",
    ],
)
def test_plain_text_and_code_pass(tool, tmp_path, text):
    assert rules(tool, tmp_path, text) == []


def test_blocks_of_code_in_documents_do_not_count(tool, tmp_path):
    document = "A worker says it.\n```text\nA worker says it.\n```\n"
    assert rules(tool, tmp_path, document, name="page.md") == ["speech"]
