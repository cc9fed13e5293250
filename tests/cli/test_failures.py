"""Whatever goes wrong: one line, an exit code, no bare traceback."""

import errno
import io
import os
import sys
from pathlib import Path

import pytest

from talka.cli import main as main_module
from talka.cli.failures import print_any_text
from talka.cli.main import build_parser, main


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def failing(monkeypatch, capsys):
    """Run `talka report x` whose command raises an error; its exit code and its message."""

    def run(error):
        def fail(args):
            raise error

        monkeypatch.setattr("talka.cli.commands.report.run", fail)
        code = main(["report", "x"])
        return code, capsys.readouterr().err

    return run


def test_an_error_of_the_system_names_the_file_and_the_reason(failing):
    error = OSError(errno.ENOSPC, "No space left on device", "runs/events.jsonl")
    assert failing(error) == (1, "talka report: runs/events.jsonl: No space left on device.\n")
    code, printed = failing(TimeoutError("nobody answered"))
    assert (code, printed) == (1, "talka report: a file or connection: nobody answered.\n")


def test_too_little_memory_is_said_in_a_line(failing):
    code, printed = failing(MemoryError("Unable to allocate 9 GiB\nand more"))
    assert (code, len(printed.splitlines())) == (1, 1)
    assert "not enough memory (Unable to allocate 9 GiB)" in printed


def test_an_error_of_ray_is_not_called_a_defect(failing):
    kind = type("GetTimeoutError", (Exception,), {"__module__": "ray.exceptions"})
    code, printed = failing(kind("Get timed out"))
    assert code == 1
    assert "Ray failed (GetTimeoutError: Get timed out). Check that `ray status` works" in printed


def test_an_unexpected_error_is_a_defect_whose_traceback_is_kept(failing, tmp_path):
    code, printed = failing(KeyError("caf\udce9"))
    assert code == 70
    assert "this is a defect in talka (KeyError: " in printed
    assert len(printed.splitlines()) == 1
    [kept] = tmp_path.glob("talka-traceback-*.txt")
    assert str(kept) in printed
    assert "in fail\n" in kept.read_text()


def test_a_traceback_is_printed_on_demand(failing, tmp_path, monkeypatch):
    monkeypatch.setenv("TALKA_TRACEBACK", "1")
    code, printed = failing(KeyError("x"))
    assert code == 70
    assert printed.startswith("Traceback (most recent call last):")
    assert printed.splitlines()[-1].startswith("talka report: this is a defect in talka")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_while_commands_are_imported_is_said_in_a_line(monkeypatch, capsys):
    def interrupt(name):
        raise KeyboardInterrupt

    monkeypatch.setattr(main_module, "_module", interrupt)
    assert main(["report", "x"]) == 130
    assert capsys.readouterr().err == "talka report: interrupted\n"


def test_output_that_cannot_be_written_is_an_error(monkeypatch, capsys):
    class Full(io.BytesIO):
        def write(self, data):
            raise OSError(errno.ENOSPC, "No space left on device")

        def fileno(self):
            return os.open(os.devnull, os.O_WRONLY)

    output = io.TextIOWrapper(Full(), encoding="utf-8", write_through=False)
    monkeypatch.setattr(sys, "stdout", output)
    assert main(["explain", "collectives", "--format", "json"]) == 1
    assert "No space left on device" in capsys.readouterr().err
    output.detach()


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_standard_output_takes_any_path(monkeypatch, encoding):
    binary = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(binary, encoding=encoding))
    print_any_text()
    print("caf\udce9 \N{SNOWMAN}", flush=True)
    snowman = b"\\u2603" if encoding == "latin-1" else b"\xe2\x98\x83"
    assert binary.getvalue() == b"caf\\udce9 " + snowman + b"\n"


@pytest.mark.parametrize("ending", ["txt", "csv"])
def test_paths_that_are_not_utf8_are_read_and_written(ending, capsys):
    gap = "," if ending == "csv" else " "
    edges = Path(os.fsdecode(b"caf\xe9." + ending.encode()))
    edges.write_text(f"1{gap}2\n2{gap}3\n")
    for out in ("csv", "parquet", "arrow", "json"):
        path = Path(os.fsdecode(b"\xff." + out.encode()))
        code = main(["graph", "bfs", str(edges), "--source", "1", "--out", str(path)])
        assert code == 0, capsys.readouterr().err
        assert path.stat().st_size
    edges.write_text(f"1{gap}2\n2{gap}x\n")
    assert main(["graph", "bfs", str(edges), "--source", "1"]) == 2
    assert rf"caf\xe9.{ending}, line 2: " in capsys.readouterr().err


def test_a_folder_of_edges_is_named(tmp_path, capsys):
    assert main(["graph", "pagerank", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"talka graph: {tmp_path}: it is a folder. Give one file of edges.\n"
    )


def test_exit_codes_are_documented():
    assert "70   a defect in talka" in build_parser().format_help()
