"""Real namespaces, real links: what ranks see, what travels, who is ended, what is left."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from talka.errors import GangError, InvalidValueError, LabError
from talka.lab import Kill, Lab, LabConfig, LabRunOptions, Pause, run_lab, watch
from tests.marked import marked

pytestmark = pytest.mark.usefixtures("lab_works")
ROOT = Path(__file__).parents[2]
TRAFFIC = [sys.executable, str(ROOT / "tests/lab/traffic_script.py")]
FAMILY = [sys.executable, str(ROOT / "tests/lab/family_script.py")]
FRAME_PER_PAYLOAD = 1514 / 1448


@pytest.fixture(scope="module")
def lab():
    """Three hosts that many tests share; each starts with links of 1 Gbit/s."""
    with Lab(LabConfig(num_hosts=3, rate_bits_per_s=1e9)) as lab:
        yield lab


def output_of(lab, command, rank, tmp_path, **options):
    lab.run(command, LabRunOptions(logs=tmp_path, timeout_s=250, **options))
    return (tmp_path / f"rank-{rank}.log").read_text()


def test_every_rank_knows_its_place(tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("RANK", "7")  # what stood there before does not matter
    config = LabConfig(num_hosts=2, rate_bits_per_s=1e9, ranks_per_host=2)
    script = "env; echo ARGUMENTS={rank}/{host}/{hosts}/{address}/{master}"
    run_lab(config, ["sh", "-c", script], LabRunOptions(logs=tmp_path))
    for rank in range(4):
        lines = (tmp_path / f"rank-{rank}.log").read_text().splitlines()
        seen = dict(line.split("=", 1) for line in lines if "=" in line)
        host = rank // 2
        expected = {
            "RANK": rank,
            "WORLD_SIZE": 4,
            "LOCAL_RANK": rank % 2,
            "LOCAL_WORLD_SIZE": 2,
            "GROUP_RANK": host,
            "MASTER_ADDR": "10.0.0.1",
            "GLOO_SOCKET_IFNAME": "eth0",
            "OMP_NUM_THREADS": 1,
            "ARGUMENTS": f"{rank}/{host}/2/10.0.0.{host + 1}/10.0.0.1",
        }
        assert {name: seen[name] for name in expected} == {k: str(v) for k, v in expected.items()}
        assert seen["PATH"].split(":")[0] == str(Path(sys.executable).parent)
        assert int(seen["MASTER_PORT"]) > 1024


def test_a_host_has_its_own_address_and_name_and_no_way_out(lab, tmp_path):
    code = (
        "import socket; me = socket.gethostname();"
        "print(me, socket.gethostbyname(me), [name for _, name in socket.if_nameindex()]);"
        "print(socket.getfqdn('::ffff:10.0.0.1'));"
        "print(socket.socket().connect_ex(('192.0.2.1', 80)))"
    )
    lines = output_of(lab, [sys.executable, "-c", code], 2, tmp_path).splitlines()
    assert lines[0] == "host-2 10.0.0.3 ['lo', 'eth0']"
    assert lines[1] == "host-0.lab"
    assert lines[2] == str(101), "network is unreachable"


def test_bytes_are_counted_with_their_headers_at_both_ends(lab):
    """TCP sends some frames twice when the machine is busy; one try without that is enough."""
    num_bytes = 4_000_000
    expected = pytest.approx(num_bytes * FRAME_PER_PAYLOAD, rel=0.01)
    for _ in range(10):
        result = lab.run([*TRAFFIC, "1", "0", str(num_bytes)], LabRunOptions(timeout_s=250))
        receiver, sender, idle = result.hosts
        assert min(sender.sent_bytes, receiver.received_bytes) > num_bytes
        if sender.sent_bytes == expected:
            break
    assert sender.sent_bytes == expected
    assert receiver.received_bytes == expected
    assert sender.received_bytes < 0.02 * num_bytes, "acknowledgements"
    assert idle.sent_bytes + idle.received_bytes < 500, "no more than who-has"


def test_ranks_of_one_host_leave_its_link_alone():
    config = LabConfig(num_hosts=1, rate_bits_per_s=1e6, ranks_per_host=2)
    result = run_lab(config, [*TRAFFIC, "1", "0", "4000000"], LabRunOptions(timeout_s=250))
    assert result.hosts[0].sent_bytes == result.hosts[0].received_bytes == 0


# A bucket holds what its link sends in a millisecond, and at least 4 kB. When timers of the machine
# are late by more than that, a link sags: a fast one on a busy host, one of a few Mbit/s hardly ever.
STEADY_RATE = 4e6


@pytest.mark.alone
@pytest.mark.parametrize("rate, num_bytes", [(1e6, 100_000), (STEADY_RATE, 300_000), (1e9, 10**7)])
@pytest.mark.parametrize("slow_end", [0, 1], ids=["slow receiver", "slow sender"])
def test_a_link_has_the_rate_that_was_set(lab, tmp_path, rate, num_bytes, slow_end):
    """Rates are never exceeded, and reached unless the machine limits them. One good try suffices."""
    lab.set_rate(2e9)
    lab.set_rate(rate, host=slow_end)
    lowest = 0.9 * rate if rate <= STEADY_RATE else 0
    for _ in range(10):
        output = output_of(lab, [*TRAFFIC, "1", "0", str(num_bytes)], 0, tmp_path)
        measured = float(output) * FRAME_PER_PAYLOAD
        if lowest <= measured <= 1.1 * rate:
            break
    lab.set_rate(1e9)
    assert lowest <= measured <= 1.1 * rate


def test_connections_between_hosts_are_controlled_by_cubic(lab, tmp_path):
    """A link with bbr, the default of some kernels, would stall now and then."""
    code = (
        "import socket; end = socket.socket(); end.settimeout(0.01);"
        "end.connect_ex(('10.0.0.1', 9));"  # nothing listens: the route decides before that
        "print(end.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16))"
    )
    assert "cubic" in output_of(lab, [sys.executable, "-c", code], 1, tmp_path)


def test_a_killed_rank_goes_with_its_whole_family_and_is_no_failure(lab, tmp_path):
    options = LabRunOptions(troubles=[Kill(1, 4)], logs=tmp_path, timeout_s=250)
    result = lab.run(FAMILY, options)
    assert [rank.exit_code for rank in result.ranks] == [0, -9, 0]
    assert (tmp_path / "rank-0.log").read_text() == "all there\nall gone\n"


def test_a_paused_rank_stands_still(lab, tmp_path):
    code = (
        "import time\nlongest, last = 0, time.monotonic()\nend = last + 4\n"
        "while last < end:\n"
        "  time.sleep(0.01); now = time.monotonic(); longest = max(longest, now - last); last = now\n"
        "print(longest)"
    )
    command = [sys.executable, "-c", code]
    output = output_of(lab, command, 1, tmp_path, troubles=[Pause(1, 2, 1)])
    assert 0.9 < float(output) < 2.5


def test_the_first_rank_that_fails_is_named_and_the_others_are_ended(lab, monkeypatch):
    monkeypatch.setattr(watch, "GRACE_S", 0.2)
    command = [
        "sh",
        "-c",
        "echo hello; if [ $RANK = 1 ]; then sleep 1; echo bad >&2; exit 3; fi; sleep 100",
    ]
    with pytest.raises(GangError, match="rank 1 of 3 ended with exit code 3") as caught:
        lab.run(command)
    assert caught.value.log_tail == "hello\nbad\n"
    result = lab.run(command, check=False)
    assert [rank.exit_code for rank in result.ranks] == [-9, 3, -9]
    assert result.ranks[2].log.read_text() == "hello\n", "kept, because something failed"
    for error in (caught.value, result.failure):
        folder = Path(str(error).split("log: ")[1].split("/rank-")[0])
        for log in folder.iterdir():
            log.unlink()
        folder.rmdir()


def test_a_run_that_takes_too_long_is_ended(lab, tmp_path):
    with pytest.raises(GangError, match="rank 0 of 3 had not finished after 0.2 s"):
        lab.run(["sleep", "100"], LabRunOptions(timeout_s=0.2, logs=tmp_path))


def test_what_ranks_leave_running_ends_with_the_run(lab, tmp_path):
    daemon = "(setsid sleep 1000 &) ; echo started"
    with marked() as mark:
        output_of(lab, ["sh", "-c", daemon], 0, tmp_path, environment=mark.environment)
        assert mark.processes() == []


def test_rank_0_is_shown_as_it_speaks(lab):
    shown = []
    lab.run(["sh", "-c", "echo from {rank}"], LabRunOptions(show=shown.append))
    assert b"".join(shown) == b"from 0\n"


def test_two_labs_at_a_time_do_not_meet(lab, tmp_path):
    with Lab(LabConfig(num_hosts=3, rate_bits_per_s=20e6)) as other:
        before = lab.traffic()
        result = other.run([*TRAFFIC, "1", "0", "200000"], LabRunOptions(timeout_s=250))
        assert result.hosts[1].sent_bytes > 200_000
        assert lab.traffic() == before
    assert output_of(lab, ["echo", "still here"], 1, tmp_path) == "still here\n"


def test_a_command_that_cannot_start_is_refused(tmp_path):
    script = tmp_path / "script"
    script.write_text("no first line that names a shell")
    script.chmod(0o755)
    config = LabConfig(num_hosts=1, rate_bits_per_s=1e9)
    with pytest.raises(InvalidValueError, match="can start.*Exec format error"):
        run_lab(config, [str(script)])


def test_a_closed_lab_says_so():
    lab = Lab(LabConfig(num_hosts=1, rate_bits_per_s=1e9))
    with pytest.raises(LabError, match="it is closed"):
        lab.run(["true"])


def run_with(*prefix, python=sys.executable, options=()):
    """A lab of two hosts, started by a process with fewer rights."""
    modules = [str(ROOT / "src"), str(Path(psutil.__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": ":".join(modules), "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryDirectory() as runs:
        os.chmod(runs, 0o777)
        lab = [python, "-m", "talka", "lab", "--hosts", "2", "--runs", runs, *options]
        return subprocess.run(
            [*prefix, *lab, "--", "cat", "/proc/self/uid_map"],
            cwd="/",
            env=environment,
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )


@pytest.mark.skipif(os.geteuid() != 0, reason="others are there already")
def test_without_rights_a_user_namespace_will_do():
    done = run_with("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-all")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:3] == ["0", "0", "1"], "root, and only root, of a user namespace"


@pytest.mark.skipif(os.geteuid() != 0, reason="others are there already")
def test_others_than_root_have_a_lab_too():
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    for python in (sys.executable, "/usr/bin/python3"):
        code = "import subprocess, sys; assert sys.version_info >= (3, 11);"
        code += "subprocess.run([sys.executable, '-c', ''], check=True)"
        if subprocess.run([*nobody, python, "-c", code], capture_output=True).returncode == 0:
            break
    else:
        pytest.skip("no Python 3.11 that user 65534 may read")
    done = run_with(*nobody, python=python)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:3] == ["0", "65534", "1"]
    assert run_with(*nobody, python=python, options=["--latency", "5ms"]).returncode == 0
    done = run_with(*nobody, python=python, options=["--cores", "0.1"])
    assert done.returncode == 1
    assert "processor quotas cannot be set here" in done.stderr
    assert "Run it as root" in done.stderr


def test_where_nothing_is_allowed_the_error_says_what_to_do():
    forbid = (
        "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-sys_admin "
    )
    shell = [
        "unshare",
        "--user",
        "--map-root-user",
        "sh",
        "-c",
        f'{forbid} --inh-caps=-all "$@"',
        "sh",
    ]
    done = run_with(*shell)
    if "unshare failed" in done.stderr:
        pytest.skip("no user namespace to forbid it in")
    assert done.returncode == 1
    assert "does not allow private namespaces" in done.stderr
    assert "Run it as root" in done.stderr
    assert "Traceback" not in done.stderr
