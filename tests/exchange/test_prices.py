"""Prices against what the exchanges that `attach` opens really send."""

import pytest

from talka.compress import layout_of
from talka.engine import Embedded
from talka.errors import SpecError
from talka.exchange import EXCHANGES, CodecRates, choose
from talka.exchange.registry import codec_of
from talka.network import Hosts, Link, Network, NetworkHost, schemes, write_hosts
from talka.train.predictions import predict_steps
from tests.exchange import price_ranks

DENSE = ("none", "fp16", "onebit+ef", "uniform:3/max/512+ef", "randomk:0.01+ef", "powersgd:4")
ADAPTIVE = ("qsgd:7", "terngrad", "topk:0.01+ef", "threshold:auto+ef")
RATES = CodecRates(2e-9, 1e-9, 0.5e-9)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_explained_bytes_are_what_attach_sends(size):
    with Embedded() as engine:
        ranks = engine.gang(price_ranks.sent_bytes, (*DENSE, *ADAPTIVE), 3, size=size)
    rows = predict_steps(
        price_ranks.LAYOUT,
        Network.equal(Link(0.0001, 1e8), size),
        compute_s=None,
        specs=(*DENSE, *ADAPTIVE),
        codec_rates=lambda spec: RATES,
    )
    for row in rows:
        assert {rank[row.spec][0] for rank in ranks} == {row.exchange}
        measured = sum(rank[row.spec][1] for rank in ranks)
        tolerance = 0.03 if row.spec in DENSE else 0.15
        assert row.price.sent_bytes == pytest.approx(measured, rel=tolerance), row.spec


def test_attach_takes_the_cheapest_exchange_on_the_links_of_a_hosts_file(tmp_path):
    far = Link(0.05, 1e8)
    write_hosts(tmp_path / "far.toml", Hosts((NetworkHost("a", far), NetworkHost("b", far))))
    networks = [None, str(tmp_path / "far.toml"), tmp_path / "far.toml"]
    with Embedded() as engine:
        ranks = engine.gang(price_ranks.attached_exchanges, "onebit+ef", networks, size=2)
    assert ranks == [["two-phase", "all-gather", "all-gather"]] * 2
    assert choose("onebit+ef", 1010, Network.equal(far, 2)).exchange == "all-gather"


@pytest.mark.parametrize("name", EXCHANGES)
def test_a_price_has_all_its_parts_and_follows_the_links(name):
    spec = {"low-rank": "powersgd:2", "global-topk": "topk:0.1"}.get(name, "fp16")
    layout = layout_of({"weight": (300, 200), "bias": (300,)})
    slow, fast = (Network.equal(Link(0.0, rate), 4) for rate in (1e6, 2e6))
    price = EXCHANGES[name].price(codec_of(spec), layout, slow, RATES)
    assert (price.spec, price.exchange) == (spec, name)
    assert price.seconds == price.codec_s + price.network_s > price.network_s > 0
    assert price.sent_bytes == sum(price.cost.sent_bytes_by_rank) > price.payload_bytes
    assert price.reason
    assert price.on(fast) == EXCHANGES[name].price(codec_of(spec), layout, fast, RATES)
    assert price.on(fast).network_s == pytest.approx(price.network_s / 2)
    assert EXCHANGES[name].price(codec_of(spec), layout, slow).codec_s == 0


@pytest.mark.parametrize("name", EXCHANGES)
def test_both_topics_of_explain_mean_the_same_by_a_name(name):
    """`explain collectives` shows network.EXCHANGES, `explain train` prices."""
    spec = {"low-rank": "powersgd:2", "global-topk": "topk:0.1"}.get(name, "none")
    layout = layout_of({"weight": (300, 300)})
    network = Network((Link(0.1, 1e6, 3e6), Link(0.2, 5e6), Link(0.1, 4e6, 2e6)))
    price = EXCHANGES[name].price(codec_of(spec), layout, network)
    cost = schemes.EXCHANGES[name].cost(network, price.payload_bytes)
    assert price.network_s == pytest.approx(cost.seconds)
    assert price.cost.sent_bytes_by_rank == pytest.approx(cost.sent_bytes_by_rank)


def test_what_an_exchange_cannot_carry_has_no_price():
    layout, network = layout_of({"weight": (30, 20)}), Network.equal(Link(0.0, 1e6), 4)
    for name, spec in [
        ("ring", "onebit+ef"),
        ("global-topk", "onebit+ef"),
        ("low-rank", "fp16"),
        ("two-phase", "powersgd:2"),
    ]:
        with pytest.raises(SpecError, match=f"{name}"):
            EXCHANGES[name].price(codec_of(spec), layout, network)
