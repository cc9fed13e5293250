"""Processor times from calls: what the model predicts for calls is found again in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talka.exchange.links.calls import CallTimes, message_costs
from talka.exchange.links.probe import ProbeResult
from talka.network import Link, Network, SharedCores
from talka.network.algorithms import algorithm_cost

SECONDS = st.floats(1e-6, 1e-3)


def times_of(network, num_cores):
    """Return what calls take on a network, by the cost model."""
    seconds = {
        name: algorithm_cost(name, "direct", network, 0).seconds
        for name in ("gather", "scatter", "all_gather")
    }
    rooted_s = (seconds["gather"] + seconds["scatter"]) / 2
    return CallTimes(rooted_s, seconds["all_gather"], num_cores)


@given(st.integers(3, 9), SECONDS, SECONDS, SECONDS)
def test_costs_on_two_shared_cores_are_found(count, latency_s, overhead_s, call_s):
    link = Link(latency_s, 1e9, overhead_s=overhead_s)
    network = Network.equal(link, count, cores=SharedCores(2, call_s))
    found = message_costs(times_of(network, 2), latency_s, count)
    assert found == pytest.approx((overhead_s, call_s), abs=1e-8)


@given(st.integers(3, 9), SECONDS, SECONDS)
def test_overheads_on_machines_of_their_own_are_found(count, latency_s, overhead_s):
    network = Network.equal(Link(latency_s, 1e9, overhead_s=overhead_s), count)
    found = message_costs(times_of(network, 0), latency_s, count)
    assert found == pytest.approx((overhead_s, 0.0), abs=1e-8)


@given(st.integers(2, 9), SECONDS, SECONDS, st.integers(0, 4))
def test_noise_gives_no_negative_costs(count, rooted_s, all_gather_s, num_cores):
    found = message_costs(CallTimes(rooted_s, all_gather_s, num_cores), 1e-4, count)
    assert min(found) >= 0


def test_a_probe_gives_links_with_bursts_and_shared_cores():
    rows = ((0.0, 2.0, 1.0), (2.0, 0.0, 1.0), (1.0, 1.0, 0.0))
    calls = CallTimes(5.0, 9.0, 2)
    network = ProbeResult((0, 1, 2), rows, rows, rows, calls).network()
    assert [link.burst_bytes for link in network.links] == [2.0, 2.0, 1.0]
    costs = message_costs(calls, 1.0, 3)
    assert {link.overhead_s for link in network.links} == {costs.overhead_s}
    assert network.cores == SharedCores(2, costs.call_s)
    assert ProbeResult((0, 1, 2), rows, rows).network().cores is None
