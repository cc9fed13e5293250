"""What may be asked of a lab, and what ranks are given."""

import json

import pytest

from talka.errors import InvalidValueError
from talka.lab import HostResult, LabConfig, LabResult, RankResult
from talka.lab.ranks import check_command, rank_environment


@pytest.mark.parametrize(
    "change, says",
    [
        ({"num_hosts": 0}, "num_hosts is 0, but must be from 1 to 250"),
        ({"num_hosts": 251}, "num_hosts is 251"),
        ({"rate_bits_per_s": 0}, "rate_bits_per_s is 0"),
        ({"rate_bits_per_s": float("nan")}, "rate_bits_per_s is nan"),
        ({"rate_of": {3: 1e6}}, "rate_of is 3, but must be a host from 0 to 2"),
        ({"rate_of": {0: 1e15}}, "rate_bits_per_s is 1000000000000000.0"),
        ({"ranks_per_host": 0}, "ranks_per_host is 0"),
        ({"ranks_per_host": 334}, "at most 1000 ranks in all"),
        ({"latency_s": -1}, "latency_s is -1, but must be 0, or from 0.1 ms to 2 s"),
        ({"latency_s": 1e-6}, "latency_s is 1e-06"),
        ({"latency_s": float("nan")}, "latency_s is nan"),
        ({"cores": 0}, "cores is 0, but must be from 0.01 to 2, the cores of this machine"),
        ({"cores": 0.9}, "cores is '2.7 in sum', but must be at most 2 for all hosts together"),
        ({"cores_of": {0: 1.5, 1: 0.6}}, "cores_of is '2.1 in sum'"),
        ({"cores_of": {3: 0.1}}, "cores_of is 3, but must be a host from 0 to 2"),
        ({"cores_of": {0: 2.5}}, "cores_of is 2.5"),
    ],
)
def test_what_no_lab_can_be_is_refused(change, says, monkeypatch):
    monkeypatch.setattr("talka.lab.base.num_cores", lambda: 2)
    with pytest.raises(InvalidValueError) as caught:
        LabConfig(**{"num_hosts": 3, "rate_bits_per_s": 1e8, **change})
    assert says in str(caught.value)


def test_quotas_may_use_all_cores_and_leave_hosts_without(monkeypatch):
    monkeypatch.setattr("talka.lab.base.num_cores", lambda: 1)
    config = LabConfig(num_hosts=3, rate_bits_per_s=1e8, cores=0.45, cores_of={2: 0.1})
    assert config.cores_by_host == (0.45, 0.45, 0.1)
    LabConfig(num_hosts=10, rate_bits_per_s=1e8, cores=0.1)
    config = LabConfig(num_hosts=2, rate_bits_per_s=1e8, cores_of={0: 1})
    assert config.cores_by_host == (1, None)


def test_threads_are_one_unless_the_caller_says_so():
    config = LabConfig(num_hosts=2, rate_bits_per_s=1e8)
    assert rank_environment(config, 0, run=1, base={})["OMP_NUM_THREADS"] == "1"
    given = {"OMP_NUM_THREADS": "3"}
    assert rank_environment(config, 0, run=1, base=given)["OMP_NUM_THREADS"] == "3"


def test_runs_meet_on_ports_of_their_own():
    config = LabConfig(num_hosts=2, rate_bits_per_s=1e8)
    ports = {rank_environment(config, 0, run=run, base={})["MASTER_PORT"] for run in range(50)}
    assert len(ports) == 50


def test_a_missing_command_and_an_unknown_one_are_refused():
    with pytest.raises(InvalidValueError, match="such as `-- python train.py`"):
        check_command([], {"PATH": "/bin"})
    with pytest.raises(InvalidValueError, match="the command is 'nonsense'"):
        check_command(["nonsense"], {"PATH": "/bin"})
    check_command(["sh"], {"PATH": "/bin"})


def test_a_result_is_plain_json():
    result = LabResult(
        (HostResult(0, "10.0.0.1", 1e8, 5, 6),), (RankResult(0, 0, -9, None),), 1.5, None
    )
    assert json.loads(json.dumps(result.as_json())) == {
        "hosts": [
            {
                "host": 0,
                "address": "10.0.0.1",
                "rate_bits_per_s": 1e8,
                "sent_bytes": 5,
                "received_bytes": 6,
            }
        ],
        "ranks": [{"rank": 0, "host": 0, "exit_code": -9, "log": None}],
        "seconds": 1.5,
    }
