"""The cheapest exchange, by the cost model."""

import pytest
import torch

from talka.compress import compressor, layout_of
from talka.compress.layout import nameless
from talka.errors import SpecError
from talka.exchange import choices, choose
from talka.exchange.compressed import MAX_GATHERED
from talka.exchange.registry import default_name
from talka.network import Link, Network

SLOW = Link(0.0001, 1e8)


def test_many_workers_go_by_two_phases_and_far_ones_by_all_gather():
    near = choose("onebit+ef", 3_000_000, Network.equal(SLOW, 8))
    assert near.exchange == "two-phase"
    assert "2 (P-1)/P B" in near.reason
    assert near.payload_bytes == pytest.approx(1.125 * 3_000_000 / 8, rel=0.01)
    far = choose("onebit+ef", 1000, Network.equal(Link(0.05, 1e8), 3))
    assert far.exchange == "all-gather"


@pytest.mark.parametrize("spec", ["topk:0.01+ef", "threshold:auto+ef", "significance:0.1+ef"])
def test_what_keeps_few_values_is_chosen_as_it_is_opened_unless_asked(spec):
    """Gathered from a few workers, where it sends more; no way of few bytes may lose more."""
    few, many = (Network.equal(SLOW, number) for number in (MAX_GATHERED, MAX_GATHERED + 1))
    for network in (few, many):
        chosen = choose(spec, 3_000_000, network).exchange
        assert chosen == default_name(compressor(spec), network.num_workers)
    first, *others = choices(spec, 3_000_000, few)
    assert (first.exchange, first.resparsifies) == ("all-gather", False)
    assert all(one.resparsifies for one in others)
    assert min(one.cost.seconds for one in others) < first.cost.seconds


def test_hosts_with_several_workers_sum_inside_first():
    inner = Link(1e-5, 1e11)
    network = Network.equal(SLOW, 8, num_hosts=2, inner=inner)
    assert choose("onebit+ef", 10_000_000, network).exchange == "hierarchical"


def test_only_what_can_carry_it_is_offered():
    network = Network.equal(SLOW, 4)
    assert {one.exchange for one in choices("onebit+ef", 1000, network)} == {
        *("two-phase", "all-gather", "master", "hierarchical")
    }
    assert {"ring", "tree"} <= {one.exchange for one in choices("fp16", 1000, network)}
    assert "global-topk" in {one.exchange for one in choices("topk:0.01+ef", 1000, network)}


def test_powersgd_is_an_exchange_of_its_own():
    layout = layout_of({"w": (1000, 1000), "b": (1000,)})
    [only] = choices("powersgd:2", 1_001_000, Network.equal(SLOW, 4), layout=layout)
    assert only.exchange == "low-rank"
    assert only.payload_bytes == 4 * (2 * 2000 + 1000)
    with pytest.raises(SpecError, match="has no rank"):
        choices("powersgd:0", 10, Network.equal(SLOW, 4))


def test_payload_sizes_follow_a_sample():
    """Nine of ten values are zero: much smaller than what gaussian values would take."""
    generator = torch.Generator().manual_seed(0)
    sample = torch.randn(100_000, generator=generator)
    sample[torch.rand(100_000, generator=generator) < 0.9] = 0

    def said(**options):
        found = choices("qsgd:7", 100_000, Network.equal(SLOW, 4), **options)
        return next(one.payload_bytes for one in found if one.exchange == "all-gather")

    really = compressor("qsgd:7").encode(sample, nameless(100_000)).num_bytes
    assert said(sample=sample) == pytest.approx(really, rel=0.03)
    gaussian = compressor("qsgd:7").encode(torch.randn(100_000), nameless(100_000)).num_bytes
    assert said() == pytest.approx(gaussian, rel=0.03)
    assert said() > 1.2 * really
