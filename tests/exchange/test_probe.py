"""Who measures with whom, what follows for links, and whether it is true on links that we set."""

import json
import os
import sys

import numpy as np
import pytest
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st

from talka.engine import Embedded
from talka.errors import InvalidValueError
from talka.exchange.links.probe import ProbeResult, probe, schedule
from talka.lab import Lab, LabConfig, LabRunOptions
from talka.network import LOOPBACK, Link

HOSTS = st.lists(st.integers(0, 9), min_size=1, max_size=20).map(sorted)


@given(HOSTS)
def test_every_two_hosts_meet_once_and_none_is_in_two_places(hosts):
    met = []
    for pairs in schedule(hosts):
        busy = [host for a, b in pairs for host in {hosts[a], hosts[b]}]
        assert len(busy) == len(set(busy))
        met += [tuple(sorted((hosts[a], hosts[b]))) for a, b in pairs]
    names = set(hosts)
    expected = [(a, b) for a in names for b in names if a < b]
    expected += [(name, name) for name in names if hosts.count(name) > 1]
    assert sorted(met) == sorted(expected)


@given(st.lists(st.integers(1, 10_000), min_size=2, max_size=8))
def test_links_are_found_from_what_pairs_do(rates):
    """A pair does what the slower of two links does, so the fastest of all can never be seen."""
    count = len(rates)
    between = [[float(min(a, b)) for b in rates] for a in rates]
    matrix = tuple(
        tuple(0.0 if a == b else between[a][b] for b in range(count)) for a in range(count)
    )
    found = [
        link.rate_bits_per_s
        for link in ProbeResult(tuple(range(count)), matrix, matrix).network().links
    ]
    visible = sorted(rates)[-2]
    for rate, own in zip(rates, found, strict=True):
        assert own == pytest.approx(min(rate, visible), rel=0.3), "equal links pool their medians"
    assert min(found) == min(rates)


@given(st.lists(st.tuples(st.integers(1, 10_000), st.integers(1, 10_000)), min_size=2, max_size=6))
def test_rates_up_and_down_are_found_from_what_pairs_do(rates):
    count = len(rates)
    matrix = tuple(
        tuple(0.0 if a == b else float(min(rates[a][0], rates[b][1])) for b in range(count))
        for a in range(count)
    )
    links = ProbeResult(tuple(range(count)), matrix, matrix).network().links
    for host, link in enumerate(links):
        others = [rate for other, rate in enumerate(rates) if other != host]
        up, down = rates[host]
        visible = min(up, max(down for _, down in others)), min(down, max(up for up, _ in others))
        assert (link.rate_bits_per_s, link.rate_down_bits_per_s) == pytest.approx(visible, rel=0.3)


def test_noise_of_one_pair_does_not_move_a_link():
    rates = [[0.0 if a == b else 100.0 for b in range(5)] for a in range(5)]
    rates[0][1] = 130.0
    matrix = tuple(map(tuple, rates))
    links = ProbeResult((0, 1, 2, 3, 4), matrix, matrix).network().links
    assert {link.rate_bits_per_s for link in links} == {100.0}
    assert {link.rate_down_bits_per_s for link in links} == {100.0}


def test_ranks_of_one_host_have_an_inner_link():
    rates = ((0.0, 9e9, 1e8), (9e9, 0.0, 1e8), (1e8, 1e8, 0.0))
    latencies = ((0.0, 1e-5, 1e-3), (1e-5, 0.0, 1e-3), (1e-3, 1e-3, 0.0))
    network = ProbeResult((0, 0, 1), latencies, rates).network()
    assert network.inner == Link(1e-5, 9e9)
    assert network.workers_per_host == (2, 1)
    assert [link.rate_bits_per_s for link in network.links] == [1e8, 1e8]
    assert network.links[0].latency_s == pytest.approx(1e-3)


def test_one_rank_alone_has_nothing_to_measure():
    assert ProbeResult((0,), ((0.0,),), ((0.0,),)).network().links == (LOOPBACK,)


def test_ranks_out_of_order_are_no_network():
    matrix = tuple(tuple(0.0 if a == b else 1.0 for b in range(3)) for a in range(3))
    with pytest.raises(InvalidValueError, match="ranks host by host"):
        ProbeResult((0, 1, 0), matrix, matrix).network()


def measure(worker):
    os.environ["GROUP_RANK"] = str(worker.rank)
    odd = dist.new_group([0, 2])
    result = probe(seconds=0)
    part = probe(odd, seconds=0) if worker.rank != 1 else None
    return [
        result.hosts,
        result.latency_s,
        result.rate_bits_per_s,
        None if part is None else part.rate_bits_per_s,
    ]


@pytest.mark.slow
def test_all_ranks_get_the_same_result_also_of_a_part_of_them():
    with Embedded() as engine:
        results = engine.gang(measure, size=3)
    hosts, latency_s, rates, part = results[0]
    assert [result[:3] for result in results] == [results[0][:3]] * 3
    assert hosts == (0, 1, 2)
    for a in range(3):
        for b in range(3):
            assert (rates[a][b] > 0) == (latency_s[a][b] > 0) == (a != b)
            assert latency_s[a][b] == latency_s[b][a]
    assert len(part) == 2
    assert results[2][3] == part
    assert results[1][3] is None


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.usefixtures("lab_works")
def test_the_probe_finds_the_rates_that_the_lab_set():
    """Headers take 4.4%. A busy machine makes a probe too low, or too high if the receiver stalls.

    So each rate has to be found in one of several tries. Slow links need no timers that are right to
    a millisecond, see `tests/lab/test_lab.py`.
    """
    fast, slow = 4e6, 1e6
    expected = np.array([[0, fast, slow], [fast, 0, slow], [slow, slow, 0]])
    is_found, is_link_found = np.zeros((3, 3), bool), np.zeros(3, bool)
    latencies_s, tries = np.full((3, 3), np.inf), []
    command = [sys.executable, "-m", "talka", "probe", "--format", "json"]
    with Lab(LabConfig(num_hosts=3, rate_bits_per_s=fast, rate_of={2: slow})) as lab:
        while len(tries) < 8 and not (is_found.all() and is_link_found.all()):
            shown = []
            lab.run(command, LabRunOptions(show=shown.append, timeout_s=250))
            probed = json.loads(b"".join(shown))
            assert probed["hosts"] == [0, 1, 2]
            tries.append(np.array(probed["rate_bits_per_s"], float))
            is_found |= np.isclose(tries[-1], expected, rtol=0.1)
            links = [link["rate_bits_per_s"] for link in probed["links"]]
            is_link_found |= np.isclose(links, [fast, fast, slow], rtol=0.1)
            latencies_s = np.minimum(latencies_s, np.array(probed["latency_s"], float))
    assert is_found.all(), tries
    assert is_link_found.all(), tries
    between = latencies_s[~np.eye(3, dtype=bool)]
    assert ((between > 1e-6) & (between < 0.05)).all()
