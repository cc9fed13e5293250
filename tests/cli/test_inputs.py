"""Pipes and standard input: all of the data is read, exactly once, by every command."""

import gzip
import io
import json
import os
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from talka.cli.main import main
from talka.errors import InputError
from talka.files import UnnamedFile
from talka.inputs import is_piped, repeatable
from talka.jobs.embeddings.vectors import Embeddings

NUM_EDGES = 30_000  # 300 kB: more than a pipe holds, and than predictions look at
EDGES = "".join(f"{at} {at + 1}\n" for at in range(NUM_EDGES)).encode()
ANALOGIES = b": capitals\nparis france rome italy\n"


def as_parquet():
    ids = np.arange(NUM_EDGES)
    file = io.BytesIO()
    pyarrow.parquet.write_table(pa.table({"source": ids, "target": ids + 1}), file)
    return file.getvalue()


class Terminal(io.BytesIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def standard_input(monkeypatch):
    def give(content):
        binary = content if isinstance(content, io.BytesIO) else io.BytesIO(content)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(binary))
        return "-"

    return give


@pytest.fixture
def piped():
    """Make a pipe as `<(command)` does, and write to it when it is read."""
    ends = []

    def give(content):
        reading, writing = os.pipe()

        def write():
            with os.fdopen(writing, "wb") as file:
                file.write(content)

        writer = threading.Thread(target=write)
        writer.start()
        ends.append((reading, writer))
        return f"/dev/fd/{reading}"

    yield give
    for reading, writer in ends:
        os.close(reading)
        writer.join()


@pytest.fixture
def named_pipe(tmp_path):
    """A named pipe whose writer writes all of it once."""
    threads = []

    def give(content):
        path = tmp_path / "pipe"
        os.mkfifo(path)
        threads.append(threading.Thread(target=path.write_bytes, args=(content,)))
        threads[-1].start()
        return str(path)

    yield give
    for thread in threads:
        thread.join()


@pytest.fixture(params=["standard_input", "piped", "named_pipe"])
def once(request):
    """Give content that can be read only once."""
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize(
    "content, file_format",
    [
        (EDGES, "auto"),
        (gzip.compress(EDGES), "auto"),
        (EDGES.replace(b" ", b","), "csv"),
        (gzip.compress(EDGES.replace(b" ", b",")), "csv"),
        (as_parquet(), "parquet"),
    ],
    ids=["edges", "edges.gz", "csv", "csv.gz", "parquet"],
)
def test_a_graph_is_read_whole_from_what_can_be_read_once(once, capsys, content, file_format):
    options = ("--input-format", file_format, "--format", "json")
    code = main(["graph", "degrees", once(content), *options])
    printed = capsys.readouterr()
    assert code == 0, printed.err
    assert json.loads(printed.out)["num_edges"] == NUM_EDGES


def test_a_graph_from_a_pipe_can_be_explained(piped, capsys):
    assert main(["graph", "pagerank", piped(EDGES), "--explain", "--format", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["graph"]["num_edges"] == NUM_EDGES
    reasons = [part["reason"] for part in printed["plan"]["parts"]]
    assert "a pipe: not known before it is read" in reasons


@pytest.mark.parametrize("file_format", ["auto", "csv"])
def test_a_broken_line_of_standard_input_is_named(standard_input, capsys, file_format):
    path = standard_input(b"1,2\n3,4\n5,x\n")
    assert main(["graph", "degrees", path, "--input-format", file_format]) == 2
    assert "standard input, line 3: " in capsys.readouterr().err


def test_the_command_says_which_columns_it_took(standard_input, capsys):
    printed = "source is column 'src', target is column 'dst', without weights (not used: 'time')"
    options = ["--input-format", "csv"]
    assert main(["graph", "bfs", standard_input(b"src,dst,time\n1,2,9\n"), "--source", "1", *options]) == 0  # fmt: skip
    assert printed in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("kind", ["graph", "embed", "evaluate"])
def test_a_terminal_is_refused_instead_of_waited_for(standard_input, capsys, tmp_path, kind):
    Embeddings(["a", "b"], np.eye(2, dtype=np.float32)).save(tmp_path / "vectors")
    path = standard_input(Terminal())
    arguments = {
        "graph": ["graph", "degrees", path],
        "embed": ["embed", path, "--out", "out"],
        "evaluate": ["evaluate", "vectors", path],
    }
    assert main(arguments[kind]) == 2
    assert "cannot read standard input: it is a terminal" in capsys.readouterr().err


def test_questions_are_read_whole_from_what_can_be_read_once(once, capsys, tmp_path):
    words = ["paris", "france", "rome", "italy"]
    Embeddings(words, np.eye(4, dtype=np.float32)).save(tmp_path / "vectors")
    assert main(["evaluate", "vectors", once(ANALOGIES), "--format", "json"]) == 0
    [report] = json.loads(capsys.readouterr().out)
    assert (report["total"]["num_asked"], report["sections"][0]["section"]) == (1, "capitals")


def test_standard_input_is_given_to_one_reader(standard_input, capsys):
    path = standard_input(ANALOGIES)
    assert main(["embed", path, "--evaluate", path, "--out", "out"]) == 2
    assert "standard input: it is given more than once" in capsys.readouterr().err


@pytest.mark.parametrize("file_format", ["auto", "csv", "parquet", "arrow"])
def test_zeros_from_a_pipe_are_refused_before_they_fill_the_disk(
    standard_input, capsys, monkeypatch, file_format
):
    monkeypatch.setattr(UnnamedFile, "write_at", lambda *_: pytest.fail("copied"))
    path = standard_input(bytes(5 << 20))
    assert main(["graph", "degrees", path, "--input-format", file_format]) == 2
    printed = capsys.readouterr().err
    assert "has a line of more than" in printed or "does not begin with" in printed


def test_a_full_disk_is_named_with_what_to_do(piped, monkeypatch):
    def full(descriptor, data, offset):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with (
        pytest.raises(InputError, match=r"cannot be copied to .* \(No space left.*TMPDIR"),
        repeatable(piped(b"1 2\n")),
    ):
        pass


def test_files_are_not_copied(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"1 2\n")
    with repeatable(path) as readable:
        assert readable == path
    assert [is_piped(name) for name in (path, tmp_path, tmp_path / "gone", Path("-"))] == [
        False,
        False,
        False,
        True,
    ]
