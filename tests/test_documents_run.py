"""Code of the documents runs as it stands."""

import subprocess
import sys

import pytest

from tests.documents import ROOT, Failed, blocks_of, is_like, run_document

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
WITH_CODE = [path for path in DOCUMENTS if blocks_of(path.read_text())]


@pytest.mark.slow
@pytest.mark.usefixtures("lab_works")
@pytest.mark.parametrize("path", WITH_CODE, ids=lambda path: path.name)
def test_every_block_runs_and_prints_what_is_shown(path):
    command = [sys.executable, "-m", "tests.documents", str(path)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_nearly_all_blocks_are_run():
    """A block that is not run names the test that does what it shows."""
    marks = [block.mark for path in WITH_CODE for block in blocks_of(path.read_text())]
    left_out = [mark for mark in marks if mark and mark.startswith("not run here: tests/")]
    assert len(left_out) <= 3
    assert set(marks) - set(left_out) <= {None, "two machines"}
    for mark in left_out:
        assert (ROOT / mark.split()[3]).is_file()


@pytest.mark.parametrize(
    "text, problem",
    [
        ("```python\nprint(1)\n```\n```text\none\n```\n", "line 1: the block printed\n1"),
        ("\n```console\n$ echo a\nb\n```\n", "line 2: `echo a` printed\na"),
        ("```console\n$ false\n```\n", "`false` ended with 1"),
        ("```console\nfirst$ true\n```\n", "needs the mark"),
    ],
)
def test_a_block_that_does_something_else_is_noticed(text, problem, tmp_path):
    (tmp_path / "page.md").write_text(text)
    with pytest.raises(Failed, match=problem):
        run_document(tmp_path / "page.md")


@pytest.mark.parametrize(
    "shown, printed, expected",
    [
        ("a 1.2 ms b", "a 13 s b\n", True),
        ("a\n...\nb", "a\nmuch\nmore\nb\n", True),
        ("a\n...\nb", "a\nb\n", True),
        ("...", "", True),
        ("a b", "a c", False),
        ("a", "a\nb", False),
    ],
)
def test_numbers_may_differ_and_words_may_not(shown, printed, expected):
    assert is_like(shown, printed) is expected
