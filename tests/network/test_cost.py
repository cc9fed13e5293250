"""Costs by hand on equal and unequal links, then against the twin on any links."""

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talka import network as net
from talka.errors import InvalidValueError
from talka.network import COLLECTIVES, EXCHANGES, Link, Network, SharedCores
from talka.network.algorithms import algorithm_cost
from talka.network.cost import Rounds
from talka.network.patterns import ring
from tests.network import twin_schemes
from tests.network.twin import Buckets, Twin

# 8 bits a second is one byte a second: seconds can be read off the bytes.
EQUAL = Network.equal(Link(1, 8), 4)
UNEQUAL = Network((Link(1, 8), Link(2, 16), Link(3, 4)))
TWO_HOSTS = Network.equal(Link(1, 8), 4, num_hosts=2, inner=Link(0.5, 80))


def by_name(name):
    if name == "low_rank":
        return lambda network, payload: net.low_rank(network, payload / 2, payload / 2)
    if name == "barrier":
        return lambda network, payload: net.barrier(network)
    return getattr(net, name)


@pytest.mark.parametrize(
    "name, sent, seconds, num_rounds",
    [
        ("broadcast", (24, 12, 0, 0), 26, 2),
        ("scatter", (9, 0, 0, 0), 10, 1),
        ("gather", (0, 12, 12, 12), 37, 1),
        ("reduce", (0, 12, 12, 12), 26, 2),
        ("ring_all_gather", (36,) * 4, 39, 3),
        ("reduce_scatter", (9,) * 4, 12, 3),
        ("all_reduce", (18,) * 4, 24, 6),
        ("all_to_all", (9,) * 4, 10, 1),
        ("barrier", (0,) * 4, 2, 2),
        ("all_gather", (36,) * 4, 37, 1),
        ("master", (36, 12, 12, 12), 74, 2),
        ("tree", (24, 24, 12, 12), 52, 4),
        ("two_phase", (18,) * 4, 20, 2),
        ("hierarchical", (18,) * 4, 20, 2),
        ("global_top_k", (24, 24, 12, 12), 52, 4),
        ("low_rank", (18,) * 4, 22, 4),
        ("gossip", (24,) * 4, 25, 1),
        ("separate_servers", (12,) * 8, 26, 2),
    ],
)
def test_four_equal_workers_with_twelve_bytes_each(name, sent, seconds, num_rounds):
    cost = by_name(name)(EQUAL, 12)
    assert cost.sent_bytes_by_rank == sent
    assert cost.seconds == seconds
    assert cost.num_rounds == num_rounds
    assert cost.total_bytes == sum(sent) == sum(cost.received_bytes_by_rank)
    assert cost.max_sent_bytes == max(sent)


@pytest.mark.parametrize(
    "name, sent, seconds",
    [
        ("broadcast", (12, 0, 0), 8 + 15),  # 0 to 1: 2 + 6, 0 to 2: 3 + 6 / 0.5
        ("scatter", (4, 0, 0), 7),  # to 2: 3 + 4, its port as long as the root's
        ("gather", (0, 6, 6), 15),  # 3 + 12 into the root at 1 byte a second
        ("reduce", (0, 6, 6), 15 + 8),
        ("ring_all_gather", (12,) * 3, 2 * 15),
        ("reduce_scatter", (4,) * 3, 2 * 7),
        ("all_reduce", (8,) * 3, 4 * 7),
        ("all_to_all", (4,) * 3, 11),  # 3 + 4 / 0.5
        ("barrier", (0,) * 3, 2 * 3),
        ("all_gather", (12,) * 3, 27),
        ("master", (12, 6, 6), 15 + 15),
        ("tree", (12, 6, 6), 46),
        ("two_phase", (8,) * 3, 22),
        ("hierarchical", (8,) * 3, 22),
        ("global_top_k", (12, 6, 6), 46),
        ("low_rank", (8,) * 3, 2 * 2 * 7),
        ("gossip", (12,) * 3, 27),
    ],
)
def test_three_unequal_workers_with_six_bytes_each(name, sent, seconds):
    cost = by_name(name)(UNEQUAL, 6)
    assert cost.sent_bytes_by_rank == pytest.approx(sent)
    assert cost.seconds == pytest.approx(seconds)


@pytest.mark.parametrize(
    "name, seconds",
    [
        ("gather", 1 + 12),  # the root receives 24 bytes in 6 seconds, but each sender needs 12
        ("scatter", 1 + 8),
        ("all_to_all", 1 + 8),
        ("broadcast", 2 * (1 + 12)),
        ("all_reduce", 4 * (1 + 4)),
    ],
)
def test_hosts_send_at_the_rate_up_and_receive_at_the_rate_down(name, seconds):
    network = Network.equal(Link(1, 8, 32), 3)
    assert by_name(name)(network, 12).seconds == seconds
    assert net.gather(Network.equal(Link(1, 32, 8), 3), 12).seconds == 1 + 24


@pytest.mark.parametrize(
    "name, sent, seconds",
    [
        ("hierarchical", (24, 12, 24, 12), 1.7 + 2 * 7 + 1.7),
        ("all_reduce", (18,) * 4, 6 * 4),  # only one worker of each host sends to the other host
        ("two_phase", (18,) * 4, 2 * 13),  # four pieces of 3 bytes share a host's port
        ("all_gather", (36,) * 4, 1 + 4 * 12),
        ("broadcast", (24, 12, 0, 0), 1.7 + (1 + 24)),
    ],
)
def test_workers_of_one_host_share_its_port(name, sent, seconds):
    cost = by_name(name)(TWO_HOSTS, 12)
    assert cost.sent_bytes_by_rank == sent
    assert cost.seconds == pytest.approx(seconds)


def test_an_all_gather_sends_four_p_p_minus_one_w_bytes():
    num_values = 1000
    for num_workers in range(1, 10):
        network = Network.equal(Link(0, 1e9), num_workers)
        total_bytes = net.all_gather(network, 4 * num_values).total_bytes
        assert total_bytes == 4 * num_workers * (num_workers - 1) * num_values


def test_one_server_machine_takes_all_payloads_through_its_port():
    cost = net.separate_servers(EQUAL, 12, server_links=[Link(1, 8)])
    assert cost.sent_bytes_by_rank == (12, 12, 12, 12, 48)
    assert cost.seconds == 2 * (1 + 48)


def test_a_faster_server_waits_for_the_slowest_worker():
    cost = net.separate_servers(UNEQUAL, 6, server_links=[Link(1, 32)])
    assert cost.sent_bytes_by_rank == (6, 6, 6, 18)
    assert cost.seconds == 15 + 15


def test_two_servers_among_three_workers():
    cost = net.colocated_servers(UNEQUAL, 6, num_servers=2)
    assert cost.sent_bytes_by_rank == (9, 9, 6)
    assert cost.seconds == 15 + 15


def test_gossip_over_a_given_graph():
    cost = net.gossip(UNEQUAL, 6, neighbours=[[1], [0], []])
    assert cost.sent_bytes_by_rank == (6, 6, 0)
    assert cost.seconds == 8


def test_low_rank_adds_two_sums():
    p, q = net.two_phase(UNEQUAL, 5), net.two_phase(UNEQUAL, 7)
    cost = net.low_rank(UNEQUAL, 5, 7)
    assert cost.seconds == p.seconds + q.seconds
    assert cost.total_bytes == pytest.approx(p.total_bytes + q.total_bytes)


rates = st.floats(1e3, 1e10)
links = st.builds(
    Link,
    st.floats(0, 0.1),
    rates,
    st.none() | rates,
    st.just(0.0) | st.floats(0, 1e6),
    st.just(0.0) | st.floats(0, 1e-3),
)
sizes = st.integers(0, 10**9) | st.floats(0, 1e9)
counts = st.lists(st.integers(1, 3), min_size=1, max_size=9).filter(lambda each: sum(each) <= 9)


@st.composite
def networks(draw):
    """Draw networks of 1 to 9 workers on unequal links, with one or several workers per host."""
    per_host = draw(st.integers(1, 9).map(lambda size: [1] * size) | counts)
    size = len(per_host)
    outer = draw(st.lists(links, min_size=size, max_size=size))
    cores = draw(st.none() | st.builds(SharedCores, st.integers(1, 4)))
    return Network(tuple(outer), tuple(per_host), draw(links), cores)


def assert_same(cost, *twins):
    assert cost.sent_bytes_by_rank == pytest.approx(
        [sum(each) for each in zip(*(twin.sent() for twin in twins), strict=True)]
    )
    assert cost.received_bytes_by_rank == pytest.approx(
        [sum(each) for each in zip(*(twin.received() for twin in twins), strict=True)]
    )
    buckets = Buckets(twins[0].network)
    assert cost.seconds == pytest.approx(sum(twin.seconds(buckets) for twin in twins))
    assert cost.num_rounds == sum(twin.num_rounds for twin in twins)


@pytest.mark.parametrize(
    "name",
    [
        *("broadcast", "scatter", "gather", "reduce", "ring_all_gather", "reduce_scatter"),
        *(
            "all_reduce",
            "all_to_all",
            "barrier",
            "all_gather",
            "master",
            "tree",
            "two_phase",
        ),
        *("hierarchical", "global_top_k", "gossip", "separate_servers"),
    ],
)
@given(network=networks(), payload=sizes)
def test_formula_and_twin_agree(name, network, payload):
    assert_same(by_name(name)(network, payload), getattr(twin_schemes, name)(network, payload))


@given(networks(), sizes, sizes)
def test_low_rank_and_twin_agree(network, p_bytes, q_bytes):
    twins = twin_schemes.low_rank(network, p_bytes, q_bytes)
    assert_same(net.low_rank(network, p_bytes, q_bytes), *twins)


@given(networks(), sizes, st.data())
def test_servers_and_twin_agree(network, payload, data):
    num_servers = data.draw(st.integers(1, network.num_workers))
    assert_same(
        net.colocated_servers(network, payload, num_servers=num_servers),
        twin_schemes.colocated_servers(network, payload, num_servers),
    )
    server_links = data.draw(st.lists(links, min_size=1, max_size=5))
    assert_same(
        net.separate_servers(network, payload, server_links=server_links),
        twin_schemes.separate_servers(network, payload, server_links),
    )


@given(networks(), sizes, st.data())
def test_gossip_over_any_graph_and_twin_agree(network, payload, data):
    ranks = range(network.num_workers)
    graph = [sorted(data.draw(st.sets(st.sampled_from(ranks))) - {rank}) for rank in ranks]
    assert_same(
        net.gossip(network, payload, neighbours=graph), twin_schemes.gossip(network, payload, graph)
    )


@st.composite
def networks_and_ranks(draw):
    """Draw a network and some of its workers: some of each host, hosts in any order."""
    network = draw(networks())
    hosts = draw(st.permutations(range(len(network.links))))
    ranks = []
    for host in hosts:
        local = [rank for rank, at in enumerate(network.host_of_worker) if at == host]
        ranks += draw(st.lists(st.sampled_from(local), unique=True))
    return network, ranks or [0]


@pytest.mark.parametrize("name", ["all_reduce", "broadcast", "two_phase", "all_to_all", "gossip"])
@given(st.data(), sizes)
def test_costs_among_some_workers_are_those_of_their_transfers(name, data, payload):
    """The twin runs in the whole network, with each rank replaced by the member of that rank."""
    network, ranks = data.draw(networks_and_ranks())
    within = network.among(ranks)
    cost, twin = by_name(name)(within, payload), getattr(twin_schemes, name)(within, payload)
    moved = Twin(network, 1)
    moved.transfers = [
        replace(move, sender=ranks[move.sender], receiver=ranks[move.receiver])
        for move in twin.transfers
    ]
    assert cost.seconds == pytest.approx(moved.seconds())
    assert cost.sent_bytes_by_rank == pytest.approx([moved.sent()[rank] for rank in ranks])
    for a, b in itertools.permutations(range(len(ranks)), 2):
        assert within.path(a, b) == network.path(ranks[a], ranks[b])


@given(networks(), sizes)
def test_a_sum_to_all_is_a_sum_of_pieces_and_a_gather_of_them(network, payload):
    links = tuple(replace(link, burst_bytes=0.0) for link in network.links)
    network = replace(network, links=links, inner=replace(network.inner, burst_bytes=0.0))
    parts = net.reduce_scatter(network, payload) + net.ring_all_gather(
        network, payload / network.num_workers
    )
    whole = net.all_reduce(network, payload)
    assert whole.seconds == pytest.approx(parts.seconds)
    assert whole.sent_bytes_by_rank == pytest.approx(parts.sent_bytes_by_rank)


@given(networks(), sizes)
def test_one_server_among_workers_is_the_master_and_all_of_them_the_two_phases(network, payload):
    one = net.colocated_servers(network, payload, num_servers=1)
    every = net.colocated_servers(network, payload, num_servers=network.num_workers)
    assert one.seconds == pytest.approx(net.master(network, payload).seconds)
    assert every.seconds == pytest.approx(net.two_phase(network, payload).seconds)


@pytest.mark.parametrize("name", {**COLLECTIVES, **EXCHANGES})
def test_one_worker_sends_nothing(name):
    scheme = EXCHANGES.get(name) or COLLECTIVES[name]
    cost = scheme.cost(Network.equal(Link(1, 8), 1), 12)
    if name == "servers":
        assert cost.seconds == 2 * (1 + 12)  # the servers are still on other machines
        return
    assert (cost.sent_bytes_by_rank, cost.seconds, cost.num_rounds) == ((0,), 0, 0)
    assert cost.reason == "nothing is sent"


@pytest.mark.parametrize(
    "name", [name for name in {**COLLECTIVES, **EXCHANGES} if name != "barrier"]
)
@pytest.mark.parametrize("num_workers", [1, 3])
@pytest.mark.parametrize("payload", [-1, math.nan, math.inf, 10**400])
def test_bad_payloads_are_refused(name, num_workers, payload):
    scheme = EXCHANGES.get(name) or COLLECTIVES[name]
    with pytest.raises(InvalidValueError, match="payload_bytes") as caught:
        scheme.cost(Network.equal(Link(1, 8), num_workers), payload)
    assert caught.value.given is payload


@pytest.mark.parametrize("name", {**COLLECTIVES, **EXCHANGES})
@given(network=networks())
def test_empty_payloads_cost_only_latency(name, network):
    scheme = EXCHANGES.get(name) or COLLECTIVES[name]
    cost = scheme.cost(network, 0)
    assert cost.total_bytes == 0
    most = max(link.latency_s for link in (*network.links, network.inner))
    overhead_s = max(link.overhead_s for link in (*network.links, network.inner))
    messages_s = 2 * network.num_workers**2 * overhead_s
    if name == "servers":
        messages_s *= 4
    assert cost.seconds <= cost.num_rounds * (most + messages_s) * (1 + 1e-12)


@pytest.mark.parametrize("graph", [[[1], [0]], [[1], [0], [2]], [[1, 1], [], []], [[3], [], []]])
def test_bad_graphs_are_refused(graph):
    with pytest.raises(InvalidValueError, match="neighbours"):
        net.gossip(UNEQUAL, 6, neighbours=graph)


@pytest.mark.parametrize("num_servers", [0, 4])
def test_bad_numbers_of_servers_are_refused(num_servers):
    with pytest.raises(InvalidValueError, match="num_servers"):
        net.colocated_servers(UNEQUAL, 6, num_servers=num_servers)
    with pytest.raises(InvalidValueError, match="server_links"):
        net.separate_servers(UNEQUAL, 6, server_links=[])


def test_the_cheapest_average_turns_with_latency_and_size():
    far, near = Link(0.05, 1e9), Link(0.0, 1e9)
    assert net.cheapest_average(Network.equal(far, 8), 1000) == "all-gather"
    assert net.cheapest_average(Network.equal(far, 8), 25_000_000) == "two-phase"
    assert net.cheapest_average(Network.equal(near, 8), 25_000_000) == "ring"


def test_costs_in_a_row_add_up_and_keep_their_reason():
    cost = net.broadcast(EQUAL, 12)
    assert (cost + cost).seconds == cost.times(2).seconds
    assert (cost + cost).sent_bytes_by_rank == cost.times(2).sent_bytes_by_rank
    assert cost.times(2).reason == cost.reason == "ceil(log2 P) = 2 rounds of B = 12 B"


def test_a_burst_passes_at_once_and_fills_up_again_while_the_round_lasts():
    network = Network.equal(Link(1, 8, burst_bytes=10), 2)
    rounds = Rounds(network)
    assert rounds.add([(0, 1)], 10).seconds == 1
    assert rounds.add([(0, 1)], 10).seconds == 1 + 9  # one byte came back during the latency
    assert rounds.add([(1, 0)], 10).seconds == 1, "the other direction has its own bucket"
    assert rounds.add([(0, 1)], 0).seconds == 1
    assert rounds.add([(0, 1)], 13).seconds == 1 + 13 - 3
    assert rounds.cost.seconds == 1 + 10 + 1 + 1 + 11


@given(networks(), sizes, st.integers(0, 9))
def test_rounds_in_a_row_cost_as_much_as_one_after_another(network, payload, times):
    pairs = ring(range(network.num_workers))
    together, single = Rounds(network), Rounds(network)
    together.add(pairs, payload, times=times)
    together.add_all_pairs(payload, times=times)
    for _ in range(times):
        single.add(pairs, payload)
    for _ in range(times):
        single.add_all_pairs(payload)
    assert together.cost.seconds == pytest.approx(single.cost.seconds)
    assert together.cost.num_rounds == single.cost.num_rounds


def test_ranks_that_share_cores_wait_for_each_other():
    link = Link(1, 8, overhead_s=0.5)
    apart, lab = Network.equal(link, 4), Network.equal(link, 4, cores=SharedCores(2, call_s=3))
    assert net.gather(apart, 0).seconds == 1 + 2 * 0.5  # the root receives two more messages
    assert net.all_gather(apart, 0).seconds == 1 + 4 * 0.5
    assert net.all_gather(lab, 0).seconds == 1 + (24 - 2) * 0.5 / 2
    assert algorithm_cost("all_gather", "direct", lab, 0).seconds == 1 + 5.5 + 3 * 2 / 2
    assert lab.path(0, 1).seconds(0) == 1, "the latency contains the time of one message"
