import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talka.errors import InvalidValueError
from talka.network import LOOPBACK, Link, Network, spread


def test_seconds_are_latency_and_bits_over_rate():
    assert Link(0.5, 8_000_000).seconds(2_000_000) == 2.5


def test_an_empty_transfer_costs_its_latency():
    assert Link(0.5, 1e9).seconds(0) == 0.5


@pytest.mark.parametrize("latency_s", [-1e-9, math.inf, math.nan])
def test_bad_latency_is_refused(latency_s):
    with pytest.raises(InvalidValueError, match="latency_s"):
        Link(latency_s, 1e9)


@pytest.mark.parametrize("rate", [0, -1.0, math.inf, math.nan])
def test_bad_rate_is_refused(rate):
    with pytest.raises(InvalidValueError, match="rate_bits_per_s"):
        Link(0.0, rate)
    with pytest.raises(InvalidValueError, match="rate_down_bits_per_s"):
        Link(0.0, 1e9, rate)


def test_the_rate_down_is_the_rate_up_unless_given():
    assert Link(0.1, 1e9) == Link(0.1, 1e9, 1e9) != Link(0.1, 1e9, 2e9)
    assert Link(0.5, 8, 16).seconds(4) == 4.5


@pytest.mark.parametrize("num_bytes", [-1, math.inf, math.nan, 10**400])
def test_bad_sizes_are_refused(num_bytes):
    with pytest.raises(InvalidValueError, match="num_bytes"):
        Link(0.0, 1e9).seconds(num_bytes)


def test_a_link_and_a_network_survive_the_way_between_processes():
    network = Network.equal(Link(0.1, 1e9), 3)
    assert pickle.loads(pickle.dumps(network)) == network


def test_unless_hosts_are_named_every_worker_is_one():
    network = Network.equal(Link(0.1, 1e9), 3)
    assert network.num_workers == 3
    assert network.host_of_worker == (0, 1, 2)
    assert network == Network([Link(0.1, 1e9)] * 3)


def test_a_path_has_the_larger_latency_and_the_lesser_rate():
    network = Network((Link(0.1, 5e6), Link(0.3, 9e6)))
    assert network.path(0, 1) == network.path(1, 0) == Link(0.3, 5e6)


def test_a_path_goes_up_at_the_sender_and_down_at_the_receiver():
    network = Network((Link(0.1, 1e6, 5e6), Link(0.3, 2e6, 9e6)))
    assert network.path(0, 1) == Link(0.3, 1e6, 2e6)
    assert network.path(1, 0) == Link(0.3, 2e6, 1e6)


def test_a_path_inside_a_host_is_the_inner_link():
    network = Network((Link(0.1, 5e6), Link(0.3, 9e6)), workers_per_host=(2, 1))
    assert network.path(0, 1) == LOOPBACK
    assert network.path(1, 2) == Link(0.3, 5e6)


@pytest.mark.parametrize("ranks", [(), (0, 0), (3,), (-1,), (0, 2, 1)])
def test_the_workers_of_a_part_are_distinct_and_host_by_host(ranks):
    network = Network((Link(0.1, 5e6), Link(0.3, 9e6)), workers_per_host=(2, 1))
    with pytest.raises(
        InvalidValueError, match="ranks .* distinct ranks from 0 to 2, those of one"
    ):
        network.among(ranks)


@pytest.mark.parametrize("counts", [(1,), (1, 1, 1), (2, 0), (-1, 2)])
def test_workers_per_host_must_fit_the_links(counts):
    with pytest.raises(InvalidValueError, match="workers_per_host"):
        Network((LOOPBACK, LOOPBACK), workers_per_host=counts)


def test_a_network_needs_a_link():
    with pytest.raises(InvalidValueError, match="links"):
        Network(())


@pytest.mark.parametrize("num_workers", [0, -1])
def test_a_network_needs_a_worker(num_workers):
    with pytest.raises(InvalidValueError, match="num_workers"):
        Network.equal(LOOPBACK, num_workers)


@pytest.mark.parametrize("num_hosts", [0, -1, 4])
def test_hosts_are_at_most_the_workers(num_hosts):
    with pytest.raises(InvalidValueError, match="num_hosts"):
        Network.equal(LOOPBACK, 3, num_hosts=num_hosts)


@given(st.integers(1, 50), st.data())
def test_spread_is_even_and_loses_nobody(num_workers, data):
    num_hosts = data.draw(st.integers(1, num_workers))
    counts = spread(num_workers, num_hosts=num_hosts)
    assert len(counts) == num_hosts
    assert sum(counts) == num_workers
    assert max(counts) - min(counts) <= 1
