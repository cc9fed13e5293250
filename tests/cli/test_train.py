"""`talka train`: the same script under talka, torchrun and Python, and all ways in which it can end."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from talka.cli.main import main
from talka.events import read_run
from talka.machine import num_cores
from talka.train.events import MetricsLogged
from tests.marked import marked
from tests.waiting import wait_until

SCRIPTS = Path(__file__).parents[1] / "train" / "scripts"
DDP, FAILING = str(SCRIPTS / "ddp.py"), str(SCRIPTS / "failing.py")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("RANK", "WORLD_SIZE", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["none.py"], "cannot read none.py: it does not exist."),
        (["."], "cannot read .: it is not a file."),
        (["--workers", "0", DDP], "--workers is 0, but must be a whole number from 1 to 1,000"),
        (["--wrokers", "2", DDP], "no option named '--wrokers'. Did you mean '--workers'?"),
        (["--engine", "rya", DDP], "engine is 'rya', but must be embedded, ray or"),
        (["--rhythm", "localsgd", DDP], "no rhythm named 'localsgd'. Did you mean 'local-sgd'?"),
        (["--rhythm", "local-sgd:0", DDP], "local-sgd:K with a whole number K of at least 1"),
        (["--compressor", "oenbit", DDP], "allowed is 'onebit', the nearest"),
        (["--exchange", "rign", DDP], "no exchange named 'rign'. Did you mean 'ring'?"),
        (["--network", "none.toml", DDP], "none.toml"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, expected, capsys):
    assert main(["train", *arguments]) == 2
    printed = capsys.readouterr()
    assert expected in printed.err
    assert len(printed.err.splitlines()) == 1
    assert not Path("runs").exists(), "nothing was run"


def found(folder):
    return [json.loads(path.read_text()) for path in sorted(folder.glob("?.json"))]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The script under `talka train` with two workers: its process, and the folder where it ran."""
    folder = tmp_path_factory.mktemp("trained")
    options = ["--workers", "2", "--compressor", "onebit+ef", "--format", "json"]
    command = [sys.executable, "-m", "talka", "train", *options, DDP, "--steps", "3", str(folder)]
    unset = {"RANK", "WORLD_SIZE", "OMP_NUM_THREADS"}
    environment = {name: text for name, text in os.environ.items() if name not in unset}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done, folder


def test_under_python_the_same_script_is_one_worker(tmp_path):
    command = [sys.executable, DDP, "--steps", "3", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    [alone] = found(tmp_path)
    assert (alone["environment"], alone["compressor"]) == ({}, None)
    assert (alone["argv"], alone["path"]) == (["--steps", "3", str(tmp_path)], str(SCRIPTS))
    assert "step 1  loss " in done.stdout
    assert "step 3  loss " in done.stdout, "the last line is printed at the end"


def test_a_script_for_torchrun_runs_unchanged(trained):
    done, folder = trained
    first, second = found(folder)
    assert first["weights"] == second["weights"]
    assert first["environment"] == {
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "GROUP_RANK": "0",
        "MASTER_ADDR": "127.0.0.1",
    }
    assert second["environment"]["LOCAL_RANK"] == "1"
    for each in (first, second):
        assert (each["argv"], each["path"]) == (["--steps", "3", str(folder)], str(SCRIPTS))
        assert each["is_main"]
        assert each["compressor"] == "onebit+ef"
        assert each["threads"] == max(1, num_cores() // 2)

    summary = json.loads(done.stdout)
    assert (summary["workers"], summary["exit_code"]) == (2, 0)
    assert summary["seconds"] > 0
    assert "rank 0 of 2 has finished\n" in done.stderr
    assert "rank 1" not in done.stderr
    run = folder / summary["run"]
    assert (run / "logs" / "rank-1.log").read_text() == "rank 1 of 2 has finished\n"
    record = read_run(run)
    assert record.status == "done"
    for rank in range(2):
        logged = [
            stamped.event
            for stamped in record.events
            if stamped.source == f"rank-{rank}" and isinstance(stamped.event, MetricsLogged)
        ]
        assert logged[0].step == 1
        assert logged[-1].step == 3
        assert sum(event.num_values for event in logged) == 3
        if rank == 0:
            assert summary["metrics"] == {"loss": logged[-1].value}


@pytest.mark.slow
def test_under_torchrun_the_same_script_computes_the_same(tmp_path, trained):
    expected = [each["weights"] for each in found(trained[1])]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
    torchrun += ["--standalone", "--local-addr=127.0.0.1"]
    done = subprocess.run(
        [*torchrun, DDP, "--steps", "3", str(tmp_path)],
        env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "TALKA_RUN_DIR": str(tmp_path / "run")},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [each["weights"] for each in found(tmp_path)] == expected
    kinds = read_run(tmp_path / "run").num_by_kind
    assert kinds[MetricsLogged] >= 4, "first and last value of both ranks"


@pytest.mark.parametrize(
    "how, rank, message",
    [
        ("raise", "1", "talka train: rank 1 of 2 raised ValueError: no such (log: runs/"),
        ("die", "1", "talka train: rank 1 of 2 died (exit code 7) (log: runs/"),
    ],
)
def test_a_failing_worker_is_named_with_the_end_of_its_log(how, rank, message, capsys):
    assert main(["train", "--workers", "2", FAILING, how, rank]) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith(message)
    assert "  | rank 1 has started\n" in printed.err
    assert printed.err.count("Traceback") == (how == "raise")
    if how == "raise":
        assert 'failing.py", line' in printed.err
        assert "runpy" not in printed.err
        assert printed.err.endswith("  | ValueError: no such\n  | row\n")
    [run] = Path("runs").iterdir()
    assert read_run(run).status == "failed"


def test_what_was_shown_of_worker_0_is_not_repeated(capsys):
    assert main(["train", "--format", "json", FAILING, "raise", "0"]) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith("rank 0 has started\nTraceback (most recent call last):\n")
    assert printed.err.count("Traceback") == 1
    assert printed.err.endswith("Its output is above.\n")
    summary = json.loads(printed.out)
    assert summary.pop("seconds") > 0
    assert summary == {
        "workers": 1,
        "exit_code": 1,
        "metrics": {},
        "run": summary["run"],
        "failed_worker": 0,
        "error": "raised ValueError: no such",
    }


def test_a_script_ends_as_python_ends_it(capsys):
    assert main(["train", FAILING, "end", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    numbered = [line for line in lines if line.startswith("line ")]
    assert numbered == [f"line {number}" for number in range(20_000)]
    assert "a thread" in lines, "threads have ended"
    assert lines.index("at exit") > lines.index("a thread")
    assert lines[-2].startswith("1 worker, ")
    assert lines[-1].startswith("run directory runs/")


def test_metrics_are_on_the_page_of_a_running_script_and_ctrl_c_leaves_nothing_behind(tmp_path):
    script = tmp_path / "waiting.py"
    script.write_text(
        "import talka, threading\ntalka.train.log(loss=0.5)\nthreading.Event().wait()"
    )
    command = [sys.executable, "-m", "talka", "train", "--workers", "2", str(script)]
    with marked() as mark:
        process = subprocess.Popen(
            command, env=mark.environment, stdout=subprocess.PIPE, start_new_session=True
        )
        wait_until(lambda: "MetricsLogged" in "".join(map(Path.read_text, Path().rglob("*.jsonl"))))
        [run] = Path("runs").iterdir()
        assert main(["report", str(run)]) == 0
        assert "<h3>loss</h3>" in (run / "report.html").read_text()
        with process.stdout:
            assert process.stdout.readline() == b"loss 0.5\n", "as soon as it is printed"
            process.send_signal(signal.SIGINT)
            process.wait(30)
        assert mark.survivors() == []
    assert process.returncode == 130
    assert read_run(run).status == "interrupted"


def test_a_closed_pipe_ends_all_workers():
    command = [sys.executable, "-m", "talka", "train", FAILING, "end", "9"]
    with marked() as mark:
        process = subprocess.Popen(
            command, env=mark.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait(30) == 0
        assert mark.survivors() == []


def test_on_ray_output_and_metrics_reach_the_run_directory(tmp_path, ray_cluster, capsys):
    options = ["--workers", "2", "--engine", f"ray://{ray_cluster.address}"]
    assert main(["train", *options, DDP, "--steps", "3", str(tmp_path)]) == 0
    first, second = found(tmp_path)
    assert first["weights"] == second["weights"]
    assert first["environment"]["WORLD_SIZE"] == "2"
    assert "rank 0 of 2 has finished\n" in capsys.readouterr().out
    [run] = Path("runs").iterdir()
    assert (run / "logs" / "rank-1.log").read_text() == "rank 1 of 2 has finished\n"
    assert read_run(run).num_by_kind[MetricsLogged] >= 4


def test_on_ray_a_failing_worker_is_named(ray_cluster, capsys):
    options = ["--workers", "2", "--engine", f"ray://{ray_cluster.address}"]
    assert main(["train", *options, FAILING, "raise", "1"]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("talka train: rank 1 of 2 raised ValueError: no such (log: runs/")
    assert printed.count("Traceback") == 1


@pytest.mark.usefixtures("lab_works")
def test_in_a_lab_each_rank_is_a_worker(tmp_path, capfd):
    lab = ["lab", "--hosts", "2", "--rate", "100mbit", "--"]
    assert main([*lab, "talka", "train", DDP, "--steps", "3", str(tmp_path)]) == 0
    first, second = found(tmp_path)
    assert first["weights"] == second["weights"]
    assert [each["environment"]["GROUP_RANK"] for each in (first, second)] == ["0", "1"]
    assert "rank 0 of 2 has finished\n" in capfd.readouterr().out
    [run] = Path("runs").iterdir()
    assert read_run(run).num_by_kind[MetricsLogged] >= 4


def test_ranks_that_never_come_are_named(monkeypatch):
    from talka.engine.gangs import torchrun
    from talka.errors import RanksMissingError

    variables = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torchrun, "START_TIMEOUT_S", 0.2)
    monkeypatch.setattr(torchrun, "_opened", [])
    with pytest.raises(RanksMissingError, match="1 of 2 ranks have connected within 0.2 s"):
        torchrun._own_store()


@pytest.mark.parametrize(
    "rank, problem, expected",
    [
        ("0", "code: -98, name: EADDRINUSE", "the port is in use. Set MASTER_PORT to a free port"),
        ("1", "The client socket has timed out", "rank 0 has not responded within 120 s"),
        ("1", "The client socket has timed out", "127.0.0.1 always is the machine itself"),
    ],
)
def test_ranks_that_do_not_meet_learn_why(monkeypatch, rank, problem, expected):
    from talka.engine.gangs import torchrun

    variables = {"RANK": rank, "GROUP_RANK": rank, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert expected in str(torchrun._missing_ranks(RuntimeError(problem)))
