import math

import pytest

from talka.channels.collectives.tree import Family
from talka.compress import layout_of
from talka.compress.layout import nameless
from talka.engine import Embedded
from talka.errors import InvalidValueError, SpecError
from talka.exchange import EXCHANGES, CodecRates
from talka.exchange.registry import codec_of, default_name
from talka.network import Link, Network
from talka.train.codecs import attached_codec
from talka.train.predictions import DEFAULT_SPECS, fastest, predict_steps
from tests.train import codec_ranks

WEIGHTS = 2_900_000
LAYOUT = layout_of({"weight": (1700, 1705), "bias": (1500,)})
NETWORK = Network.equal(Link(latency_s=0.0001, rate_bits_per_s=100e6), 4)
NO_WORK = CodecRates(0.0, 0.0, 0.0)
CARRIED = {"ring": "fp16", "tree": "fp16", "low-rank": "powersgd:1", "global-topk": "topk:0.1"}


def predict(*specs, network=NETWORK, compute_s=0.05, rates=NO_WORK, layout=LAYOUT):
    return predict_steps(
        layout, network, compute_s=compute_s, specs=specs, codec_rates=lambda spec: rates
    )


def by(prediction, exchange):
    return next(one for one in (prediction, *prediction.alternatives) if one.exchange == exchange)


def test_plain_ddp_sends_what_the_formula_of_the_ring_says():
    """C3: 2 (P-1)/P 4 W = 17.4 MB per worker, 1.39 s at 100 Mbit/s: 0.14 times one machine."""
    ring = by(*predict("none"), "ring")
    assert ring.price.cost.max_sent_bytes == pytest.approx(2 * 3 / 4 * 4 * WEIGHTS, rel=1e-4)
    assert ring.price.cost.max_sent_bytes == pytest.approx(17.4e6, rel=1e-4)
    assert ring.price.network_s == pytest.approx(17.4e6 * 8 / 100e6 + 6 * 0.0001, rel=1e-4)
    assert ring.step_s == pytest.approx(1.4426, rel=1e-3)
    assert ring.speed_vs_one == pytest.approx(4 * 0.05 / 1.4426, rel=1e-3)
    assert ring.speed_vs_ddp == pytest.approx(1, rel=1e-4)


def test_one_bit_sends_a_bit_and_an_eighth_of_a_value():
    """One bit each, and under feedback two means of 32 bits for every 512."""
    [onebit] = predict("onebit+ef")
    assert onebit.exchange == "two-phase"
    assert onebit.price.cost.max_sent_bytes == pytest.approx(
        2 * 3 / 4 * WEIGHTS * 1.125 / 8, rel=0.01
    )
    assert onebit.price.cost.max_sent_bytes == pytest.approx(0.612e6, rel=0.01)
    assert onebit.price.network_s == pytest.approx(0.0492, rel=0.01)
    assert onebit.speed_vs_one == pytest.approx(4 * 0.05 / (0.05 + 0.0492), rel=0.01)
    assert onebit.speed_vs_ddp == pytest.approx(1.4426 / (0.05 + 0.0492), rel=0.01)


def test_a_step_is_computing_and_coding_and_sending():
    for one in predict(*DEFAULT_SPECS, rates=CodecRates(3e-9, 2e-9, 1e-9)):
        for row in (one, *one.alternatives):
            assert row.step_s == pytest.approx(0.05 + row.price.codec_s + row.price.network_s)
            assert row.speed_vs_one == pytest.approx(4 * 0.05 / row.step_s)


def test_rows_stand_in_the_order_of_the_specs_and_the_shortest_is_found():
    rows = predict(*DEFAULT_SPECS)
    assert tuple(row.spec for row in rows) == DEFAULT_SPECS
    assert fastest(rows).step_s == min(row.step_s for row in rows)


@pytest.mark.parametrize("num_workers", [2, 4, 9])
def test_a_row_has_the_exchange_that_attach_opens(num_workers):
    for one in predict(*DEFAULT_SPECS, network=Network.equal(Link(0.0001, 100e6), num_workers)):
        codec = attached_codec(one.spec)
        assert one.exchange == default_name(codec, num_workers)
        again = EXCHANGES[one.exchange].price(codec, LAYOUT, one_network(num_workers), NO_WORK)
        assert one.price == again


def one_network(num_workers):
    return Network.equal(Link(0.0001, 100e6), num_workers)


def test_a_clearly_shorter_exchange_is_named():
    [slow] = predict("none", rates=CodecRates(1e-9, 1e-9, 1e-8), network=one_network(2))
    assert slow.exchange == "ring"
    assert slow.cheaper is None, "two phases save a hundredth of the step"
    far = Network.equal(Link(0.05, 100e6), 8)
    assert predict("fp16", network=far)[0].cheaper.exchange == "direct"
    [sparse] = predict("topk:0.01+ef", network=one_network(8))
    assert sparse.exchange == "all-gather"
    assert sparse.cheaper is None, "the others would sparsify twice"
    assert min(other.step_s for other in sparse.alternatives) < 0.9 * sparse.step_s


def test_hosts_make_the_hierarchy_worth_it():
    link = Link(0.0001, 100e6)
    [spread] = predict("onebit+ef", network=Network.equal(link, 8))
    [packed] = predict("onebit+ef", network=Network.equal(link, 8, num_hosts=2))
    assert (spread.exchange, packed.exchange) == ("two-phase", "two-phase")
    assert spread.cheaper is None
    assert packed.cheaper.exchange == "hierarchical"


def test_low_rank_sends_the_factors_of_the_real_shapes():
    [factors] = predict("powersgd:4")
    floats = 4 * (1700 + 1705) + 1500  # a bias travels whole
    assert factors.exchange == "low-rank"
    assert factors.price.cost.max_sent_bytes == pytest.approx(2 * 3 / 4 * 4 * floats)
    [flat] = predict("powersgd:4", layout=layout_of({"weight": (WEIGHTS,)}))
    assert flat.price.cost.max_sent_bytes == pytest.approx(17.4e6)


def test_unknown_computing_leaves_the_exchange_alone():
    [onebit] = predict("onebit+ef", compute_s=None)
    assert onebit.compute_s is None
    assert onebit.speed_vs_one is None
    assert onebit.step_s == onebit.price.codec_s + onebit.price.network_s
    assert onebit.speed_vs_ddp == pytest.approx(1.3926 / 0.0492, rel=0.01)


def test_one_worker_sends_nothing():
    for one in predict(*DEFAULT_SPECS, network=Network.equal(Link(0.0001, 1e8), 1)):
        assert (one.price.cost.max_sent_bytes, one.price.network_s) == (0, 0)
        assert one.speed_vs_one == 1


def test_a_wrong_spec_is_an_error_before_anything_is_measured():
    def measured(spec):
        raise AssertionError(f"{spec} was measured")

    with pytest.raises(SpecError, match="'onebit[+]ef', the nearest"):
        predict_steps(
            LAYOUT, NETWORK, compute_s=1.0, specs=["none", "onbit+ef"], codec_rates=measured
        )


@pytest.mark.parametrize("compute_s", [0.0, -1.0, math.nan])
def test_computing_takes_time(compute_s):
    with pytest.raises(InvalidValueError, match="compute_s"):
        predict("none", compute_s=compute_s)


def per_value(name, rates, num_workers, num_hosts):
    """Return the codec seconds per value of an exchange, from its price."""
    network = Network.equal(Link(0, 1e9), num_workers, num_hosts=num_hosts)
    codec = codec_of(CARRIED.get(name, "onebit+ef"))
    return EXCHANGES[name].price(codec, nameless(1), network, rates).codec_s


class TestCodecSeconds:
    def test_the_busiest_worker_codes_as_many_values_as_the_formula_says(self):
        names, rates = ["two-phase", "all-gather", "master"], CodecRates(1000.0, 1.0)
        with Embedded() as engine:
            ranks = engine.gang(codec_ranks.coded_values, names, 16 * 1024, size=4)
        for name in names:
            encodes, decodes = max(tuple(coded[name]) for coded in ranks)
            assert 1000 * encodes + decodes == per_value(name, rates, 4, 4), name

    def test_a_hierarchy_is_two_phases_among_hosts(self):
        rates = CodecRates(1000.0, 1.0)
        assert per_value("hierarchical", rates, 8, 2) == per_value("two-phase", rates, 2, 2)

    @pytest.mark.parametrize("num_workers", range(2, 34))
    def test_global_topk_takes_the_longest_way_through_the_tree(self, num_workers):
        rates = CodecRates(encode_s=7.0, decode_s=1.0)

        def seconds_until_sent(rank):
            children = Family(rank, num_workers).children
            ready = max([rates.encode_s, *map(seconds_until_sent, children)])
            sums = (len(children) + 1) * rates.decode_s + rates.encode_s
            return ready + (sums if children else 0)

        twin = seconds_until_sent(0) + rates.decode_s
        formula = per_value("global-topk", rates, num_workers, num_workers)
        if num_workers & (num_workers - 1) == 0:
            assert formula == twin
        else:
            assert formula >= twin

    def test_sums_on_the_way_cost_only_the_conversion(self):
        rates = CodecRates(5.0, 3.0, 2.0)
        assert per_value("ring", rates, 4, 4) == per_value("tree", rates, 4, 4) == 2.0
        assert per_value("low-rank", rates, 4, 4) == 8.0
