import pytest

from talka.compress import layout_of
from talka.exchange import CodecRates
from talka.network import Link, Network
from talka.train.predictions import fastest, predict_steps
from talka.train.verdict import break_even_compute_s, break_even_rate, verdict

LAYOUT = layout_of({"weight": (1700, 1705), "bias": (1500,)})
SPECS = ("none", "fp16", "onebit+ef", "topk:0.01+ef", "powersgd:4")
RATES = CodecRates(0.4e-9, 0.3e-9, 0.3e-9)


def network(rate_bits_per_s, *, num_workers=4, num_hosts=None, latency_s=0.0001):
    return Network.equal(Link(latency_s, rate_bits_per_s), num_workers, num_hosts=num_hosts)


def predict(net, *, compute_s=0.05, specs=SPECS, rates=RATES):
    return predict_steps(
        LAYOUT, net, compute_s=compute_s, specs=specs, codec_rates=lambda spec: rates
    )


@pytest.mark.parametrize("num_hosts", [4, 2])
@pytest.mark.parametrize("spec", SPECS)
def test_at_the_break_even_rate_workers_are_as_fast_as_one_machine(spec, num_hosts):
    [one] = predict(network(1e6, num_hosts=num_hosts), specs=[spec])
    rate = break_even_rate(one, network(1e6, num_hosts=num_hosts))
    there = predict(network(rate, num_hosts=num_hosts), specs=[spec])[0]
    same = next(x for x in (there, *there.alternatives) if x.exchange == one.exchange)
    assert same.speed_vs_one == pytest.approx(1, rel=0.002)
    assert same.speed_vs_one >= 1


def test_the_break_even_rate_is_what_hands_find():
    """4 workers gain 3 * 50 ms; 17.4 MB take 150 ms, less 6 latencies, at 932 Mbit/s."""
    [plain] = predict(network(1e8), specs=["none"], rates=CodecRates(1e-6, 1e-6, 0.0))
    assert plain.exchange == "ring"
    expected = 17.4e6 * 8 / (0.150 - 6 * 0.0001)
    assert break_even_rate(plain, network(1e8)) == pytest.approx(expected, rel=0.002)


def test_with_steps_of_the_break_even_time_workers_are_as_fast_as_one_machine():
    for one in predict(network(1e8)):
        compute_s = break_even_compute_s(one, network(1e8))
        [again] = predict(network(1e8), compute_s=compute_s, specs=[one.spec])
        assert again.speed_vs_one == pytest.approx(1)


def test_no_rate_is_enough_where_latency_or_encoding_takes_the_gain():
    slow = network(1e8, latency_s=1.0)
    assert [break_even_rate(one, slow) for one in predict(slow)] == [None] * len(SPECS)
    [onebit] = predict(network(1e8), specs=["onebit+ef"], rates=CodecRates(1e-6, 1e-6))
    assert break_even_rate(onebit, network(1e8)) is None
    assert "No link rate would change that, only steps that compute for more than" in verdict(
        predict(slow), slow
    )


def test_it_says_that_one_machine_is_better_and_what_would_change_that():
    net = network(1e6)
    rows = predict(net)
    text = verdict(rows, net)
    assert text.startswith("4 workers would be slower than one machine: even with powersgd:4 by")
    least = min(break_even_rate(one, net) for one in rows)
    assert f"links of more than {least / 1e6:.2f} Mbit/s (with powersgd:4 by low-rank)" in text
    longest = break_even_compute_s(fastest(rows), net)
    assert f"steps that compute for more than {1000 * longest:.3g} ms." in text


def test_a_rate_of_another_row_is_named_if_the_best_one_cannot_gain():
    """PowerSGD's latencies alone take longer than the gain: one gathering has fewer."""
    net = network(1e5, latency_s=0.012)
    rows = predict(net, compute_s=0.015)
    assert fastest(rows).spec == "powersgd:4"
    assert "(with topk:0.01+ef by all-gather)" in verdict(rows, net)


def test_it_says_how_much_is_gained_and_until_when():
    text = verdict(predict(network(1e8)), network(1e8))
    assert text.startswith("4 workers with powersgd:4 by low-rank would be ")
    assert "Plain DDP would be slower than one machine: 0.139 times its speed." in text
    assert "One machine wins with links below" in text


def test_plain_ddp_is_called_so_where_it_is_best():
    net = network(100e9, latency_s=0.0)
    rows = predict(net, rates=CodecRates(1e-6, 1e-6, 0.0), specs=("none", "onebit+ef"))
    text = verdict(rows, net)
    assert text.startswith("4 workers with plain DDP would be 3.")
    assert "no other row is faster" in text
    rows = predict(net, compute_s=None, rates=CodecRates(1e-6, 1e-6, 0.0), specs=("none",))
    assert verdict(rows, net).startswith("No exchange is shorter than that of plain DDP")


def test_nothing_is_said_about_one_machine_where_computing_is_unknown():
    rows = predict(network(1e8), compute_s=None)
    text = verdict(rows, network(1e8))
    assert "The shortest exchange is powersgd:4 by low-rank" in text
    assert "one machine" not in text


def test_one_worker_has_nothing_to_exchange():
    assert "nothing to exchange" in verdict([], network(1e8, num_workers=1))
