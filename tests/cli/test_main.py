"""The command line as a person meets it: real processes, exit codes, no tracebacks."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from talka import __version__ as talka_version
from talka.cli.main import main
from talka.events import read_run
from tests.plan_parts import printed_parts
from tests.waiting import wait_until

TALKA = [sys.executable, "-m", "talka.cli.main"]
DEMO_COSTS = [
    "demo",
    "demo/start",
    "demo/corpus",
    "embed/vocabulary",
    "embed/cooccurrence",
    "embed/train",
    "demo/slices/start",
    "demo/slices",
]


def talka(*arguments, **options):
    return subprocess.run(
        [*TALKA, *map(str, arguments)], capture_output=True, text=True, timeout=250, check=False, **options
    )  # fmt: skip


def test_help_imports_nothing_heavy():
    """`talka --help` is fast because it does not touch the libraries that are slow to import."""
    code = (
        "import sys; from talka.cli.main import build_parser; build_parser().format_help();"
        "print(sorted({'torch', 'numba', 'duckdb', 'ray', 'pyarrow', 'numpy', 'rich'}"
        " & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_only_the_command_that_was_typed_is_imported():
    code = (
        "import sys; from talka.cli.main import main; main(['report', '/no/such']);"
        "print([name for name in sys.modules if name in ('talka.cli.commands.report', 'talka.cli.commands.embed')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['talka.cli.commands.report']\n"


@pytest.mark.parametrize("command", [[], ["explain"], ["graph"], ["embed"], ["similar"]])
def test_a_command_that_needs_more_prints_its_help(command):
    done, asked = talka(*command), talka(*command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(" ".join(["usage: talka", *command, "[-h]"]))
    assert done.stdout == asked.stdout


def test_the_version_has_a_short_option():
    assert talka("-V").stdout == talka("--version").stdout == f"talka {talka_version}\n"


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["report", "no/such/run"], "run directory no/such/run: does not exist"),
        (["report", "/tmp"], "so it is not a run"),
        (["explain", "collectives", "--workers", "0"], "--workers is 0"),
        (["explain", "collectives", "--rate", "fast"], "--rate is 'fast'"),
        (["demo", "--epochs", "0"], "--epochs is 0"),
        (["demo", "--runs", "/dev/null/runs"], "cannot be written"),
    ],
)
def test_bad_input_is_one_or_two_lines_and_an_exit_code(arguments, expected, tmp_path):
    done = talka(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 2


@pytest.mark.slow
def test_the_demo_explains_runs_and_reports(tmp_path):
    done = talka("demo", "--epochs", "3", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "quiet if the output is not a terminal"
    printed = json.loads(done.stdout)
    assert len(printed["neighbours"]) >= 10
    assert len(printed["loss"]) == 3
    assert (tmp_path / printed["report"]).is_file()
    assert (tmp_path / printed["vectors"] / "vectors.txt").is_file()
    record = read_run(tmp_path / printed["run"])
    assert record.status == "done"
    parts = {row.cost_id: row for row in record.comparisons()}
    assert set(DEMO_COSTS) == {part for part, row in parts.items() if row.predicted}
    assert all(parts[part].measured for part in DEMO_COSTS)
    for part in ("demo/corpus", "demo/slices"):
        sent = parts[part].measured.sent_bytes
        assert sent == pytest.approx(parts[part].predicted.sent_bytes, rel=0.3)


@pytest.mark.slow
def test_the_demo_can_stop_after_explaining(tmp_path):
    done = talka("demo", "--explain", "--format", "json", cwd=tmp_path)
    explained = json.loads(done.stdout)
    parts = printed_parts(explained)
    assert list(parts) == DEMO_COSTS
    assert explained["total_s"] == pytest.approx(
        sum(parts[cost_id]["seconds"] for cost_id in DEMO_COSTS[1:])
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("signum, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_demo_says_so_in_its_run_directory(tmp_path, signum, code):
    process = subprocess.Popen(
        [*TALKA, "demo"], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )

    def has_begun():
        assert process.poll() is None
        return any("Phase" in path.read_text() for path in tmp_path.glob("runs/*/events.jsonl"))

    wait_until(has_begun)
    process.send_signal(signum)
    _, printed = process.communicate(timeout=250)
    assert process.returncode == code, printed
    assert b"Traceback" not in printed
    [run] = (tmp_path / "runs").iterdir()
    assert read_run(run).status == "interrupted"
    assert not (run / "result.json").exists()


def test_a_reader_that_leaves_is_no_error():
    ours, theirs = os.pipe()
    os.close(ours)  # as `| head` does, but for certain before the first line
    with os.fdopen(theirs, "wb") as output:
        done = subprocess.run(
            [*TALKA, "explain", "collectives"],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.stderr == ""


def test_an_error_of_ours_becomes_its_exit_code(capsys):
    assert main(["report", str(Path("/no/such"))]) == 2
    assert capsys.readouterr().err.startswith("talka report: ")
