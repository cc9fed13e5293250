import math

import pytest

from talka.compress import layout_of
from talka.engine import Embedded
from talka.errors import InvalidValueError, SpecError
from talka.exchange import EXCHANGES
from talka.exchange.topologies.sums import Family
from talka.network import Link, Network
from talka.train.codec_rates import CodecRates
from talka.train.predictions import CODEC_SECONDS, DEFAULT_SPECS, fastest, predict_steps
from tests.train import codec_ranks

WEIGHTS = 2_900_000
LAYOUT = layout_of({"weight": (1700, 1705), "bias": (1500,)})
NETWORK = Network.equal(Link(latency_s=0.0001, rate_bits_per_s=100e6), 4)
NO_WORK = CodecRates(0.0, 0.0, 0.0)


def predict(*specs, network=NETWORK, compute_s=0.05, rates=NO_WORK, layout=LAYOUT):
    return predict_steps(
        layout, network, compute_s=compute_s, specs=specs, codec_rates=lambda spec: rates
    )


def by(prediction, exchange):
    return next(one for one in (prediction, *prediction.runners_up) if one.exchange == exchange)


def test_plain_ddp_sends_what_the_formula_of_the_ring_says():
    """C3: 2 (P-1)/P 4 W = 17.4 MB per worker, 1.39 s at 100 Mbit/s: 0.14 times one machine."""
    ring = by(*predict("none"), "ring")
    assert ring.sent_bytes_per_worker == pytest.approx(2 * 3 / 4 * 4 * WEIGHTS, rel=1e-4)
    assert ring.sent_bytes_per_worker == pytest.approx(17.4e6, rel=1e-4)
    assert ring.network_s == pytest.approx(17.4e6 * 8 / 100e6 + 6 * 0.0001, rel=1e-4)
    assert ring.step_s == pytest.approx(1.4426, rel=1e-3)
    assert ring.speed_vs_one == pytest.approx(4 * 0.05 / 1.4426, rel=1e-3)
    assert ring.speed_vs_ddp == pytest.approx(1, rel=1e-4)


def test_one_bit_sends_a_bit_and_an_eighth_of_a_value():
    """One bit each, and under feedback two means of 32 bits for every 512."""
    [onebit] = predict("onebit+ef")
    assert onebit.exchange == "two-phase"
    assert onebit.sent_bytes_per_worker == pytest.approx(2 * 3 / 4 * WEIGHTS * 1.125 / 8, rel=0.01)
    assert onebit.sent_bytes_per_worker == pytest.approx(0.612e6, rel=0.01)
    assert onebit.network_s == pytest.approx(0.0492, rel=0.01)
    assert onebit.speed_vs_one == pytest.approx(4 * 0.05 / (0.05 + 0.0492), rel=0.01)
    assert onebit.speed_vs_ddp == pytest.approx(1.4426 / (0.05 + 0.0492), rel=0.01)


def test_a_step_is_computing_and_coding_and_sending():
    for one in predict(*DEFAULT_SPECS, rates=CodecRates(3e-9, 2e-9, 1e-9)):
        for row in (one, *one.runners_up):
            assert row.step_s == pytest.approx(0.05 + row.codec_s + row.network_s)
            assert row.speed_vs_one == pytest.approx(4 * 0.05 / row.step_s)
            assert row.resparsifies or row.step_s >= one.step_s


def test_rows_stand_in_the_order_of_the_specs_and_the_shortest_is_found():
    rows = predict(*DEFAULT_SPECS)
    assert tuple(row.spec for row in rows) == DEFAULT_SPECS
    assert fastest(rows).step_s == min(row.step_s for row in rows)


def test_the_exchange_is_the_shortest_with_encoding_counted():
    """Two phases and direct sums have the same links to pay; copies are what two phases cost more."""
    assert predict("none", rates=CodecRates(1e-9, 1e-9, 0.0))[0].exchange == "direct"
    assert predict("none", rates=CodecRates(1e-9, 1e-9, 1e-8))[0].exchange == "two-phase"
    [two] = predict("onebit+ef", network=Network.equal(Link(0.0001, 100e6), 2))
    assert two.exchange == "all-gather"


def test_hosts_make_the_hierarchy_worth_it():
    link = Link(0.0001, 100e6)
    [spread] = predict("onebit+ef", network=Network.equal(link, 8))
    [packed] = predict("onebit+ef", network=Network.equal(link, 8, num_hosts=2))
    assert (spread.exchange, packed.exchange) == ("two-phase", "hierarchical")


def test_low_rank_sends_the_factors_of_the_real_shapes():
    [factors] = predict("powersgd:4")
    floats = 4 * (1700 + 1705) + 1500  # a bias travels whole
    assert factors.exchange == "low-rank"
    assert factors.sent_bytes_per_worker == pytest.approx(2 * 3 / 4 * 4 * floats)
    [flat] = predict("powersgd:4", layout=layout_of({"weight": (WEIGHTS,)}))
    assert flat.sent_bytes_per_worker == pytest.approx(17.4e6)


def test_unknown_computing_leaves_the_exchange_alone():
    [onebit] = predict("onebit+ef", compute_s=None)
    assert onebit.compute_s is None
    assert onebit.speed_vs_one is None
    assert onebit.step_s == onebit.codec_s + onebit.network_s
    assert onebit.speed_vs_ddp == pytest.approx(1.3926 / 0.0492, rel=0.01)


def test_one_worker_sends_nothing():
    for one in predict(*DEFAULT_SPECS, network=Network.equal(Link(0.0001, 1e8), 1)):
        assert (one.sent_bytes_per_worker, one.network_s) == (0, 0)
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


class TestCodecSeconds:
    def test_every_exchange_has_a_formula(self):
        assert CODEC_SECONDS.keys() == EXCHANGES.keys()

    def test_the_busiest_worker_codes_as_many_values_as_the_formula_says(self):
        names, rates = ["two-phase", "all-gather", "master"], CodecRates(1000.0, 1.0)
        with Embedded() as engine:
            ranks = engine.gang(codec_ranks.coded_values, names, 16 * 1024, size=4)
        for name in names:
            encodes, decodes = max(tuple(coded[name]) for coded in ranks)
            assert 1000 * encodes + decodes == CODEC_SECONDS[name](rates, 4, 4), name

    def test_a_hierarchy_is_two_phases_among_hosts(self):
        rates = CodecRates(1000.0, 1.0)
        assert CODEC_SECONDS["hierarchical"](rates, 8, 2) == CODEC_SECONDS["two-phase"](rates, 2, 2)

    @pytest.mark.parametrize("num_workers", range(2, 34))
    def test_global_topk_takes_the_longest_way_through_the_tree(self, num_workers):
        rates = CodecRates(encode_s=7.0, decode_s=1.0)

        def seconds_until_sent(rank):
            children = Family(rank, num_workers).children
            ready = max([rates.encode_s, *map(seconds_until_sent, children)])
            sums = (len(children) + 1) * rates.decode_s + rates.encode_s
            return ready + (sums if children else 0)

        twin = seconds_until_sent(0) + rates.decode_s
        formula = CODEC_SECONDS["global-topk"](rates, num_workers, num_workers)
        if num_workers & (num_workers - 1) == 0:
            assert formula == twin
        else:
            assert formula >= twin

    def test_sums_on_the_way_cost_only_the_conversion(self):
        rates = CodecRates(5.0, 3.0, 2.0)
        assert CODEC_SECONDS["ring"](rates, 4, 4) == CODEC_SECONDS["tree"](rates, 4, 4) == 2.0
        assert CODEC_SECONDS["low-rank"](rates, 4, 4) == 8.0
