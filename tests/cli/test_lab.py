"""`talka lab` and `talka probe` as a person meets them."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from talka.cli.main import main
from talka.engine.events import WorkerLost
from talka.events import read_run
from talka.lab import watch
from talka.lab.events import HostJoined, RankExited
from talka.machine import num_cores
from talka.network import read_hosts
from talka.report import write_report

TALKA = [sys.executable, "-m", "talka"]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """Run directories are made in a folder of the test."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["--hosts", "0", "--", "true"], "--hosts is 0"),
        (["--hosts", "-3", "--", "true"], "--hosts is -3"),
        (["--hosts", "1000", "--", "true"], "from 1 to 250"),
        (["--rate", "fast", "--", "true"], "--rate is 'fast'"),
        (["--rate", "1bit", "--", "true"], "--rate is '1 bit/s', but must be"),
        (["--rate-of", "4=20mbit", "--", "true"], "--rate-of is 4, but must be a host from 0 to 3"),
        (["--rate-of", "2:20mbit", "--", "true"], "HOST=RATE, as in 2=20mbit"),
        (["--rate-of", "2=fast", "--", "true"], "--rate-of is 'fast'"),
        (["--kill", "4@1s", "--", "true"], "--kill is 4, but must be a rank from 0 to 3"),
        (["--kill", "2", "--", "true"], "RANK@TIME, as in 2@10s"),
        (["--kill", "2@soon", "--", "true"], "--kill is 'soon'"),
        (["--pause", "2@1s", "--", "true"], "RANK@TIME+TIME, as in 1@5s+3s, or HOST:TIME/TIME"),
        (["--pause", "4:1s/10s", "--", "true"], "--pause is 4, but must be a host from 0 to 3"),
        (["--pause", "3:10s/1s", "--", "true"], "shorter than its period of 1 s"),
        (["--pause", "3:1s", "--", "true"], "as in 3:0.5s/10s"),
        (["--cut", "4@1s", "--", "true"], "--cut is 4, but must be a host from 0 to 3"),
        (["--cut", "2:1s", "--", "true"], "HOST@TIME, as in 2@30s"),
        (["--latency", "5km", "--", "true"], "--latency is '5km'"),
        (["--latency", "1h", "--", "true"], "but must be 0, or from 0.1 ms to 2 s"),
        (["--cores", "0", "--", "true"], "--cores is 0"),
        (["--cores", "1000", "--", "true"], "--cores is 1000"),
        (["--cores-of", "4=0.1", "--", "true"], "--cores-of is 4, but must be a host from 0 to 3"),
        (["--cores-of", "2:0.1", "--", "true"], "HOST=N, as in 3=0.09"),
        (["--pause", "9@1s+1s", "--", "true"], "--pause is 9"),
        (["--ranks-per-host", "0", "--", "true"], "--ranks-per-host is 0"),
        (["--"], "for example: talka lab --hosts 4 --rate 100mbit -- talka probe"),
        ([], "the command is missing. Add it after `--`"),
        (
            ["--hosts", "2", "python", "train.py", "--rate", "3"],
            "-- is missing before the command. "
            "Type: talka lab --hosts 2 -- python train.py --rate 3",
        ),
        (["--hosts=2", "echo", "a b"], "Type: talka lab --hosts=2 -- echo 'a b'"),
        (["--", "no-such-program"], "the command is 'no-such-program'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, expected, capsys, monkeypatch):
    monkeypatch.setattr("talka.lab.lab.Child", None)  # it is refused before anything is built
    assert main(["lab", *arguments]) == 2
    printed = capsys.readouterr()
    assert expected in printed.err
    assert len(printed.err.splitlines()) == 1
    assert printed.out == ""
    assert not Path("runs").exists(), "nothing was run"


@pytest.mark.usefixtures("lab_works")
def test_json_is_all_that_stands_on_stdout(tmp_path):
    arguments = ["--hosts", "2", "--rate", "100mbit", "--rate-of", "1=20mbit", "--format", "json"]
    command = ["sh", "-c", "echo rank {rank} of {hosts} -- x"]
    done = subprocess.run(
        [*TALKA, "lab", *arguments, "--logs", str(tmp_path / "logs"), "--", *command],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert [host["rate_bits_per_s"] for host in printed["hosts"]] == [1e8, 2e7]
    assert [host["address"] for host in printed["hosts"]] == ["10.0.0.1", "10.0.0.2"]
    assert [rank["exit_code"] for rank in printed["ranks"]] == [0, 0]
    assert Path(printed["ranks"][1]["log"]).read_text() == "rank 1 of 2 -- x\n"
    assert done.stderr == "rank 0 of 2 -- x\n", "output of rank 0, as it is written"


@pytest.mark.usefixtures("lab_works")
def test_a_failing_rank_is_named_with_the_end_of_its_log(capfd, tmp_path, monkeypatch):
    monkeypatch.setattr(watch, "GRACE_S", 0.2)
    script = "echo started; if [ $RANK = 1 ]; then echo no such data >&2; exit 3; fi; sleep 100"
    logs = ["--logs", str(tmp_path)]
    assert main(["lab", "--hosts", "2", *logs, "--", "sh", "-c", script]) == 1
    printed = capfd.readouterr()
    assert "talka lab: rank 1 of 2 ended with exit code 3" in printed.err
    assert printed.err.endswith("  | started\n  | no such data\n")
    assert "2 ranks on 2 hosts" in printed.out, "the table is there all the same"
    assert printed.out.startswith("started\n")


@pytest.mark.usefixtures("lab_works")
def test_a_rank_that_was_to_be_killed_is_no_failure(capfd):
    troubles = ["--kill", "1@200ms", "--pause", "0@100ms+200ms"]
    script = "if [ $RANK = 1 ]; then sleep 100; fi"
    assert main(["lab", "--hosts", "2", *troubles, "--", "sh", "-c", script]) == 0
    printed = capfd.readouterr()
    assert printed.err == ""
    assert "-9" in printed.out


EMIT = """
import os
from pathlib import Path
from talka.engine.events import WorkerLost
from talka.events import Stream
folder, rank = Path(os.environ["TALKA_RUN_DIR"]), os.environ["RANK"]
Stream(folder / f"events.rank-{rank}.jsonl").emit(WorkerLost(f"test-{rank}", "a test"))
"""


@pytest.mark.usefixtures("lab_works")
def test_a_run_is_recorded_with_the_events_of_its_ranks(capfd):
    options = ["--hosts", "2", "--latency", "1ms", "--cut", "1@1h", "--pause", "0:1s/1h"]
    assert main(["lab", *options, "--", sys.executable, "-c", EMIT]) == 0
    printed = capfd.readouterr()
    [folder] = Path("runs").iterdir()
    assert printed.out.endswith(f"run directory {folder}\n")
    assert "latency 1 ms" in printed.out
    record = read_run(folder)
    assert record.status == "done"
    assert record.config["config"]["latency_s"] == 0.001
    assert record.config["config"]["cut"] == ["1@1h"]
    assert [rank["exit_code"] for rank in record.result["ranks"]] == [0, 0]
    events = [stamped.event for stamped in record.events]
    hosts = [event for event in events if isinstance(event, HostJoined)]
    assert [(event.host, event.latency_s, event.cores) for event in hosts] == [
        (0, 0.001, None),
        (1, 0.001, None),
    ]
    exits = [event for event in events if isinstance(event, RankExited)]
    assert exits == [RankExited(0, 0, 0), RankExited(1, 1, 0)]
    lost = {event.worker for event in events if isinstance(event, WorkerLost)}
    assert lost == {"test-0", "test-1"}, "what ranks wrote is in the same directory"
    assert {path.name for path in (folder / "logs").iterdir()} == {"rank-0.log", "rank-1.log"}
    page = write_report(folder).read_text()
    assert "<h2>Lab</h2>" in page
    assert "cut the link of host 1" in page
    assert "10.0.0.2" in page


@pytest.mark.usefixtures("lab_works")
def test_a_failed_run_is_recorded_as_such(capfd):
    assert main(["lab", "--hosts", "1", "--", "sh", "-c", "exit 3"]) == 1
    [folder] = Path("runs").iterdir()
    record = read_run(folder)
    assert record.status == "failed"
    assert record.result is None
    assert f"{folder}/logs/rank-0.log" in capfd.readouterr().err


@pytest.mark.usefixtures("lab_works")
def test_a_command_that_cannot_start_leaves_no_run_directory(capfd, tmp_path):
    script = tmp_path / "script"
    script.write_text("no first line that names a shell")
    script.chmod(0o755)
    assert main(["lab", "--hosts", "1", "--", str(script)]) == 2
    assert "Exec format error" in capfd.readouterr().err
    assert not Path("runs").exists()


def test_a_probe_alone_says_how_to_run_it(capsys, monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    assert main(["probe"]) == 2
    printed = capsys.readouterr().err
    assert "talka lab --hosts 3 --rate 100mbit -- talka probe" in printed
    assert "torchrun" in printed


def test_a_probe_of_no_workers_is_refused(capsys):
    assert main(["probe", "--workers", "0"]) == 2
    assert "--workers is 0" in capsys.readouterr().err


@pytest.mark.slow
def test_a_probe_of_this_machine_measures_loopback(tmp_path):
    out = tmp_path / "hosts.toml"
    environment = {name: value for name, value in os.environ.items() if name != "RANK"}
    done = subprocess.run(
        [
            *TALKA,
            "probe",
            "--workers",
            "2",
            "--seconds",
            "0.1",
            "--format",
            "json",
            "--out",
            str(out),
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["hosts"] == [0, 0]
    assert printed["rate_bits_per_s"][0][1] > 1e8
    assert len(printed["links"]) == 1
    [host] = read_hosts(out).hosts
    assert (host.name, host.num_workers) == (socket.gethostname(), 2)
    assert host.num_cores == num_cores()
    measured = printed["links"][0]["rate_bits_per_s"]
    assert host.link.rate_bits_per_s == pytest.approx(measured, rel=0.01)


def test_a_probe_replaces_no_file(capsys, tmp_path):
    assert main(["probe", "--workers", "2", "--out", str(tmp_path)]) == 2
    assert "exists already. Give another name" in capsys.readouterr().err
