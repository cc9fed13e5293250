"""Real labs whose hosts differ: processor quotas, latency, pauses of a host, links that are cut."""

import sys
from pathlib import Path

import psutil
import pytest

from talka.errors import LabError
from talka.lab import Cut, Lab, LabConfig, LabRunOptions, PauseHost

pytestmark = pytest.mark.usefixtures("lab_works")
HERE = Path(__file__).parent
SPINNING, DISTANCE, INTERRUPTED = (
    [sys.executable, str(HERE / f"{name}_script.py")]
    for name in ("spinning", "distance", "interrupted")
)
FRAME_PER_PAYLOAD = 1514 / 1448
CORES, SLOW_CORES = 0.25, 0.05


def printed(lab, command, tmp_path, **options):
    """Run a command; return the result, and the number that each rank printed last."""
    result = lab.run(command, LabRunOptions(logs=tmp_path, timeout_s=250, **options))
    texts = [rank.log.read_text().split() for rank in result.ranks]
    return result, [float(text[-1]) if text else None for text in texts]


@pytest.mark.alone
@pytest.mark.usefixtures("quotas_work")
def test_a_fifth_of_the_quota_is_a_fifth_of_the_speed_while_all_hosts_are_busy(tmp_path):
    config = LabConfig(num_hosts=3, rate_bits_per_s=1e9, cores=CORES, cores_of={2: SLOW_CORES})
    with Lab(config) as lab:
        for _ in range(5):  # on a busy machine a host gets less than its quota
            _, (first, second, slow) = printed(lab, [*SPINNING, "2"], tmp_path)
            assert max(first, second) < 1.2 * CORES, "never much more than the quota"
            assert slow < 1.3 * SLOW_CORES
            if min(first, second) > 0.8 * CORES and 3.5 < first / slow < 6.5:
                break
    assert min(first, second) > 0.8 * CORES
    assert 3.5 < first / slow < 6.5


@pytest.mark.alone
def test_a_packet_takes_the_latency_and_a_link_keeps_its_rate(tmp_path):
    rate, latency_s, num_bytes = 1e8, 0.02, 20_000_000
    config = LabConfig(num_hosts=2, rate_bits_per_s=rate, latency_s=latency_s)
    with Lab(config) as lab:
        for _ in range(10):  # one good try suffices: a busy machine is late, and its links sag
            result, (payload, trip_s) = printed(lab, [*DISTANCE, str(num_bytes)], tmp_path)
            assert trip_s > 2 * 0.95 * latency_s
            measured = payload * FRAME_PER_PAYLOAD
            assert measured < 1.05 * rate
            if trip_s < 2 * 1.05 * latency_s and measured > 0.9 * rate:
                break
    assert trip_s < 2 * 1.05 * latency_s
    assert measured > 0.9 * rate
    receiver, sender = result.hosts
    expected = num_bytes * FRAME_PER_PAYLOAD
    assert 0.99 * expected < receiver.received_bytes < 1.1 * expected, "with some sent twice"
    assert 0.99 * expected < sender.sent_bytes < 1.1 * expected
    assert sender.received_bytes < 0.05 * num_bytes, "acknowledgements"


@pytest.mark.parametrize("latency_s", [0, 0.005])
def test_a_cut_link_is_silent_until_it_is_restored_and_a_host_pauses(tmp_path, latency_s):
    config = LabConfig(num_hosts=3, rate_bits_per_s=1e8, latency_s=latency_s)
    troubles = [Cut(1, 1.5), PauseHost(2, 0.3, 0.8)]
    with Lab(config) as lab:
        result, (arrived, sent, num_stops) = printed(
            lab, [*INTERRUPTED, "2.5"], tmp_path, troubles=troubles
        )
        assert 0 < arrived < sent - 20
        assert num_stops >= 2
        assert [rank.exit_code for rank in result.ranks] == [0, 0, 0]
        assert result.hosts[1].sent_bytes > result.hosts[0].received_bytes
        lab.restore(1)
        _, (arrived, sent, _) = printed(lab, [*INTERRUPTED, "0.3"], tmp_path)
        assert arrived == sent
        lab.cut(1)
        lab.cut(1)  # twice is as good as once
        lab.restore(1)
        _, (arrived, sent, _) = printed(lab, [*INTERRUPTED, "0.3"], tmp_path)
        assert arrived == sent


def test_a_relay_that_died_between_two_runs_is_reported():
    config = LabConfig(num_hosts=2, rate_bits_per_s=1e8, latency_s=0.01)
    with Lab(config) as lab:
        [first] = psutil.Process(lab._child.pid).children()
        [relay] = first.children()
        relay.kill()
        psutil.wait_procs([relay], timeout=30)
        with pytest.raises(LabError, match="the relay that delays packets ended"):
            lab.traffic()
