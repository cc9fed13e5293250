"""`talka lab` and `talka probe` as a person meets them."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from talka.cli.main import main
from talka.lab import watch
from talka.machine import num_cores
from talka.network import read_hosts

TALKA = [sys.executable, "-m", "talka"]


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
        (["--pause", "2@1s", "--", "true"], "RANK@TIME+TIME, as in 1@5s+3s"),
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
