"""Prices of rhythms against their slow twins: timelines of every action of every worker."""

import math

import pytest

from talka.compress.layout import nameless
from talka.errors import InvalidValueError, UnknownNameError
from talka.exchange import EXCHANGES, CodecRates
from talka.exchange.registry import codec_of
from talka.network import Link, Network
from talka.network.timeline import Compute, ReceiveFrom, SendTo, timeline
from talka.train.codecs import attached_codec
from talka.train.rhythms.pricing import extras_price, pace_s, rhythm_price
from talka.train.rhythms.short_forms import RhythmConfig

VALUES = 1_000_000
LINK = Link(0.001, 100e6)
PAIR = Network.equal(LINK, 2)
RATES = CodecRates(1e-8, 1e-8)
FREE_LINK = Link(0.0, 1e18)


def price_of(spec="onebit+ef", network=PAIR, rates=RATES):
    """Return the price of an all-gather: the two workers send each other one payload."""
    exchange = EXCHANGES["all-gather"]
    return exchange.price(attached_codec(spec), nameless(VALUES), network, rates)


def exchanged(price, worker):
    """Return the actions of a round: the codec, then a payload to the other worker and back."""
    payload = price.cost.max_sent_bytes
    return [Compute(price.codec_s), SendTo(1 - worker, payload), ReceiveFrom(1 - worker)]


def every_step_twin(price, compute_s, num_steps):
    step = [[Compute(compute_s[worker]), *exchanged(price, worker)] for worker in range(2)]
    return timeline(PAIR, [actions * num_steps for actions in step]).total_s / num_steps


def local_sgd_twin(price, extras, compute_s, every, num_rounds):
    rounds = [
        [*[Compute(compute_s[worker])] * every, *exchanged(price, worker)]
        + (exchanged(extras, worker) if extras else [])
        for worker in range(2)
    ]
    total_s = timeline(PAIR, [actions * num_rounds for actions in rounds]).total_s
    return total_s / (every * num_rounds)


def delayed_twin(price, compute_s, delay, num_steps):
    """Each host has a worker that computes and one that exchanges, with a core each."""
    hosts = Network((LINK, LINK), (2, 2), FREE_LINK)
    actions = []
    for worker in range(2):
        computing, exchanging, other = 2 * worker, 2 * worker + 1, 2 * (1 - worker) + 1
        steps = []
        for step in range(num_steps):
            steps += [Compute(compute_s[worker]), SendTo(exchanging, 0)]
            steps += [ReceiveFrom(exchanging)] if step >= delay else []
        payload = [Compute(price.codec_s), SendTo(other, price.cost.max_sent_bytes)]
        rounds = [ReceiveFrom(computing), *payload, ReceiveFrom(other), SendTo(computing, 0)]
        actions += [steps, rounds * num_steps]
    return timeline(hosts, actions).total_s / num_steps


COMPUTING = [0.0001, 0.02, 0.03, 0.05, 0.3]


@pytest.mark.parametrize("compute_s", COMPUTING)
def test_every_step_is_the_sum(compute_s):
    price = price_of()
    predicted = rhythm_price(RhythmConfig(name="every-step", steps=1), price, compute_s)
    assert predicted.step_s == pytest.approx(every_step_twin(price, [compute_s] * 2, 10))
    assert predicted.step_s == pytest.approx(compute_s + price.codec_s + price.network_s)
    assert predicted.step_bytes == predicted.round_bytes == price.cost.max_sent_bytes


@pytest.mark.parametrize("compute_s", COMPUTING)
@pytest.mark.parametrize("delay", [0, 1, 2, 5])
def test_a_delayed_step_is_the_longer_of_computing_and_the_exchange(delay, compute_s):
    price = price_of()
    form = RhythmConfig(name="delayed", steps=delay)
    predicted = rhythm_price(form, price, compute_s, codec_overlaps=True)
    num_steps = 400
    twin = delayed_twin(price, [compute_s] * 2, delay, num_steps)
    start_s = (delay + 1) * (compute_s + predicted.round_s)
    assert twin == pytest.approx(predicted.step_s, abs=start_s / num_steps)
    on_one_core = rhythm_price(form, price, compute_s)
    assert on_one_core.step_s >= predicted.step_s
    if delay:
        assert on_one_core.step_s == max(compute_s + price.codec_s, price.seconds)
    else:
        assert on_one_core.step_s == predicted.step_s == compute_s + price.seconds


@pytest.mark.parametrize("compute_s", COMPUTING)
@pytest.mark.parametrize("every", [1, 7, 50])
@pytest.mark.parametrize("num_extras", [0, 20_000])
def test_local_sgd_divides_a_round_among_its_steps(every, compute_s, num_extras):
    price = price_of()
    dense = EXCHANGES["all-gather"].price(codec_of("none"), nameless(num_extras or 1), PAIR)
    extras = dense if num_extras else None
    predicted = rhythm_price(
        RhythmConfig(name="local-sgd", steps=every), price, compute_s, extras=extras
    )
    twin = local_sgd_twin(price, extras, [compute_s] * 2, every, 5)
    assert predicted.step_s == pytest.approx(twin)
    own_bytes = price.cost.max_sent_bytes + (extras.cost.max_sent_bytes if extras else 0)
    assert predicted.round_bytes == own_bytes
    assert predicted.step_bytes == own_bytes / every
    assert predicted.total_bytes == 2 * own_bytes


def test_extras_are_averaged_as_plain_floats():
    assert extras_price(0, PAIR) is None
    extras = extras_price(1000, Network.equal(LINK, 4))
    assert extras.cost.max_sent_bytes == pytest.approx(2 * 3 / 4 * 4000)
    with_extras = rhythm_price(
        RhythmConfig(name="every-step", steps=1), price_of(), 0.1, extras=extras
    )
    assert with_extras == rhythm_price(RhythmConfig(name="every-step", steps=1), price_of(), 0.1)


@pytest.mark.parametrize("compute_s", [(0.02, 0.1), (0.3, 0.01), (0.05, 0.05)])
def test_the_slowest_worker_sets_the_pace(compute_s):
    price = price_of()
    equal, shared = pace_s(compute_s), pace_s(compute_s, proportional=True)
    predicted = rhythm_price(RhythmConfig(name="local-sgd", steps=10), price, equal)
    twin_s = local_sgd_twin(price, None, compute_s, 10, 40)
    # In this exchange the slowest worker does not wait: the payload of the other is there already.
    assert 0.999 * twin_s <= predicted.step_s <= 1.001 * (twin_s + price.network_s / 10)
    speeds = [1 / seconds for seconds in compute_s]
    shares = [2 * speed / sum(speeds) for speed in speeds]
    paces = [share * seconds for share, seconds in zip(shares, compute_s, strict=True)]
    assert paces == pytest.approx([shared] * 2)
    predicted = rhythm_price(RhythmConfig(name="every-step", steps=1), price, shared)
    assert predicted.step_s == pytest.approx(every_step_twin(price, paces, 4))
    assert shared <= equal


def test_a_rhythm_has_the_bytes_of_its_exchange_with_many_workers():
    network = Network.equal(LINK, 4)
    price = EXCHANGES["two-phase"].price(
        attached_codec("onebit+ef"), nameless(VALUES), network, RATES
    )
    predicted = rhythm_price(RhythmConfig(name="local-sgd", steps=50), price, 0.01)
    assert predicted.step_bytes == pytest.approx(2 * 3 / 4 * VALUES * 1.125 / 8 / 50, rel=0.01)


@pytest.mark.parametrize("compute_s", [(), (0.0,), (1.0, math.inf), (math.nan,)])
def test_every_worker_takes_some_time(compute_s):
    with pytest.raises(InvalidValueError, match="compute_s"):
        pace_s(compute_s)


@pytest.mark.parametrize("text", ["every-step", "delayed:0", "delayed:12", "local-sgd:1"])
def test_a_short_form_is_read_and_written(text):
    assert str(RhythmConfig.parse(text)) == text


def test_a_wrong_short_form_names_what_is_allowed():
    assert RhythmConfig.parse("delayed") == RhythmConfig(name="delayed", steps=1)
    for text in ("local-sgd", "local-sgd:0", "local-sgd:", "every-step:2", "delayed:-1"):
        with pytest.raises(InvalidValueError, match="local-sgd:K"):
            RhythmConfig.parse(text)
    with pytest.raises(UnknownNameError, match="'local-sgd'"):
        RhythmConfig.parse("localsgd:5")
