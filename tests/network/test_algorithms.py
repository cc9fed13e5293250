"""Costs of algorithms of collectives against lists of transfers, and a chain step by step."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talka.channels.choosing import ASSUMED, assumed_network, check_algorithm, choose
from talka.errors import UnknownNameError
from talka.network import Link, Network, SharedCores
from talka.network.algorithms import (
    ALGORITHMS,
    CHUNK_BYTES,
    algorithm_cost,
    chain_broadcast,
    chain_part_bytes,
    cheapest_algorithm,
)
from tests.network import twin_schemes
from tests.network.twin import Twin

LINKS = st.builds(
    Link,
    st.floats(0, 0.1),
    st.floats(1e5, 1e10),
    st.floats(1e5, 1e10) | st.none(),
    st.just(0.0) | st.floats(0, 1e6),
    st.just(0.0) | st.floats(0, 1e-3),
)
CORES = st.none() | st.builds(SharedCores, st.integers(1, 3))
NETWORKS = st.builds(
    lambda links, cores: Network(tuple(links), cores=cores),
    st.lists(LINKS, min_size=1, max_size=7),
    CORES,
)


def direct_broadcast(network, payload):
    twin = Twin(network, 1, owners={0})
    twin.run_round([(0, rank, {(0, 0)}, payload) for rank in twin.ranks if rank])
    assert twin.all_know_all()
    return twin


def scattered_reduce(network, payload):
    twin, size = twin_schemes.all_to_all(network, payload), network.num_workers
    share = payload / size
    twin.run_round([(r, 0, twin.of_chunk(r, r), share) for r in twin.ranks if r])
    assert twin.all_know_all([0])
    return twin


def scattered_broadcast(network, payload):
    """Pieces to their owners, then from each to all others; two workers need one round."""
    others = range(1, network.num_workers)
    twin = Twin(network, max(1, len(others)), owners={0})
    twin.run_round([(0, rank, {(rank - 1, 0)}, payload / len(others)) for rank in others])
    passed_on = [(a, b) for a in others for b in others if a != b]
    twin.run_round([(a, b, {(a - 1, 0)}, payload / len(others)) for a, b in passed_on])
    assert twin.all_know_all()
    return twin


TWINS = {
    ("broadcast", "scattered"): scattered_broadcast,
    ("broadcast", "direct"): direct_broadcast,
    ("broadcast", "tree"): twin_schemes.broadcast,
    ("reduce", "direct"): twin_schemes.gather,
    ("reduce", "tree"): twin_schemes.reduce,
    ("reduce", "scattered"): scattered_reduce,
    ("all_reduce", "gathered"): twin_schemes.all_gather,
    ("all_reduce", "direct"): twin_schemes.two_phase,
    ("all_reduce", "ring"): twin_schemes.all_reduce,
    ("all_reduce", "tree"): twin_schemes.tree,
    ("gather", "direct"): twin_schemes.gather,
    ("scatter", "direct"): twin_schemes.scatter,
    ("all_gather", "direct"): twin_schemes.all_gather,
    ("all_to_all", "direct"): twin_schemes.all_to_all,
    ("barrier", "dissemination"): twin_schemes.barrier,
}


def test_every_algorithm_has_a_twin():
    known = {(name, each) for name, algorithms in ALGORITHMS.items() for each in algorithms}
    assert known == {*TWINS, ("broadcast", "chain")}


@pytest.mark.parametrize("name, algorithm", TWINS)
@given(network=NETWORKS, payload=st.floats(0, 1e8))
def test_costs_agree_with_their_twins(name, algorithm, network, payload):
    cost, twin = algorithm_cost(name, algorithm, network, payload), TWINS[name, algorithm](
        network, payload
    )  # fmt: skip
    assert cost.sent_bytes_by_rank == pytest.approx(twin.sent())
    assert cost.received_bytes_by_rank == pytest.approx(twin.received())
    assert cost.seconds == pytest.approx(twin.seconds())


def chain_seconds(network, payload):
    """Pass every part from worker to worker; a worker sends one part after another.

    A part has left when, for each earlier part, the bucket has let pass all since that one was ready.
    """
    part = chain_part_bytes(payload)
    sizes = [part] * round(payload // part)
    sizes += [payload % part] if payload % part or not sizes else []
    there = [0.0] * len(sizes)
    for rank in range(network.num_workers - 1):
        path = network.path(rank, rank + 1)
        left = [
            max(
                there[first]
                + 8
                * max(0.0, sum(sizes[first : last + 1]) - path.burst_bytes)
                / path.rate_bits_per_s
                for first in range(last + 1)
            )
            for last in range(len(sizes))
        ]
        there = [at + path.latency_s for at in left]
    return there[-1]


@given(
    st.builds(
        Link, st.floats(0, 0.1), st.floats(1e6, 1e10), burst_bytes=st.just(0) | st.floats(0, 4e6)
    ),
    st.integers(1, 9),
    st.integers(0, 20),
    st.booleans(),
)
def test_a_chain_of_equal_links_takes_as_long_as_its_parts(link, count, num_parts, is_short):
    network, payload = Network.equal(link, count), num_parts * CHUNK_BYTES
    payload = payload // 40 if is_short and num_parts < 40 else payload
    payload -= payload % chain_part_bytes(payload) if payload > CHUNK_BYTES // 16 else 0
    cost = chain_broadcast(network, payload)
    assert cost.sent_bytes_by_rank == (payload,) * (count - 1) + (0,)
    assert cost.received_bytes_by_rank == (0,) + (payload,) * (count - 1)
    assert cost.seconds == pytest.approx(chain_seconds(network, payload) if count > 1 else 0.0)


@given(
    st.lists(
        st.builds(Link, st.floats(0, 0.1), st.floats(1e5, 1e10), st.floats(1e5, 1e10)),
        min_size=2,
        max_size=6,
    ),
    st.integers(1, 12),
)
def test_the_slowest_link_sets_the_pace_of_a_chain(links, num_parts):
    network = Network(tuple(links))
    seconds = chain_broadcast(network, num_parts * CHUNK_BYTES).seconds
    assert seconds == pytest.approx(chain_seconds(network, num_parts * CHUNK_BYTES))


@given(st.sampled_from(sorted(ALGORITHMS)), NETWORKS, st.integers(0, 10**8))
def test_the_chosen_algorithm_is_the_cheapest(name, network, payload):
    chosen = cheapest_algorithm(name, network, payload)
    costs = {each: algorithm_cost(name, each, network, payload) for each in ALGORITHMS[name]}
    least = min(cost.seconds for cost in costs.values())
    assert costs[chosen].seconds == pytest.approx(least)


def test_choices_follow_size_and_machines():
    network = assumed_network(["a", "b", "c", "d"])
    assert network == Network.equal(ASSUMED, 4)
    assert choose("all_reduce", network, 10) == "gathered"
    assert choose("all_reduce", network, 10**8) != "gathered"
    assert choose("broadcast", network, 100) == "direct"
    assert choose("broadcast", network, 10**8) == "chain"
    full = Link(2e-4, 1e8, burst_bytes=12_500)  # pieces pass at once, the whole value does not
    assert choose("broadcast", Network.equal(full, 4), 10_000) == "scattered"
    assert choose("broadcast", network, 10**6 + 1) == choose("broadcast", network, 1 << 20)
    near = assumed_network(["a"] * 4)
    assert [choose("all_reduce", near, size) for size in (100, 10**7)] == ["gathered", "direct"]
    assert [choose("reduce", near, size) for size in (100, 10**7)] == ["direct", "tree"]
    assert choose("broadcast", near, 10**7) == "direct"
    assert assumed_network(["a", "b", "a"]) is None
    assert assumed_network(["a", "a"]).workers_per_host == (2,)
    check_algorithm("reduce", None)
    for call in (
        lambda: check_algorithm("reduce", "ring"),
        lambda: algorithm_cost("reduce", "ring", network, 1),
    ):
        with pytest.raises(UnknownNameError, match="scattered"):
            call()
