"""Verdict on several workers against one machine (S1): as text, and the break-even points."""

from collections.abc import Sequence
from dataclasses import replace

from talka.network import Link, Network
from talka.train.predictions import StepPrediction, fastest
from talka.units import format_rate, format_seconds

SLOWEST_BITS_PER_S, FASTEST_BITS_PER_S = 1.0, 1e15
"""Range of the search for a rate that would change the verdict."""


def verdict(predictions: Sequence[StepPrediction], network: Network) -> str:
    """Summarize the result of `predict_steps` in one or two sentences."""
    if network.num_workers == 1:
        return "One worker has nothing to exchange: a step takes as long as its computing."
    best = fastest(predictions)
    if best.compute_s is None:
        if _is_plain_ddp(best):
            return f"No exchange is shorter than that of plain DDP: {format_seconds(best.step_s)}."
        return (
            f"The shortest exchange is {_named(best)}: {format_seconds(best.step_s)}, "
            f"{_times(best.speed_vs_ddp)} as fast as that of plain DDP."
        )
    assert best.speed_vs_one is not None
    if best.speed_vs_one > 1:
        return _faster(best, best.speed_vs_one, network)
    return _slower(predictions, best, best.speed_vs_one, network)


def break_even_compute_s(prediction: StepPrediction, network: Network) -> float:
    """Return the computing time of a step, in seconds, above which P workers are faster than one.

    P c / (c + codec + network) = 1, so c = (codec + network) / (P - 1).
    """
    return prediction.price.seconds / (network.num_workers - 1)


def break_even_rate(prediction: StepPrediction, network: Network) -> float | None:
    """Return the rate of all links above which P workers are faster than one machine.

    In bits per second, to a thousandth. None if no rate is enough: latency, encoding and links
    inside hosts alone take longer than the (P - 1) * computing that can be gained.
    """
    if prediction.compute_s is None or network.num_workers == 1:
        return None
    price = prediction.price
    budget_s = (network.num_workers - 1) * prediction.compute_s - price.codec_s

    def suffices(rate_bits_per_s: float) -> bool:
        return price.on(_at(network, rate_bits_per_s)).network_s <= budget_s

    low, high = SLOWEST_BITS_PER_S, FASTEST_BITS_PER_S
    if not suffices(high):
        return None
    while high > 1.001 * low:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def _faster(best: StepPrediction, speed: float, network: Network) -> str:
    if _is_plain_ddp(best):
        text = (
            f"{network.num_workers} workers with plain DDP would be {_times(speed)} as fast as one "
            "machine; no other row is faster."
        )
    else:
        text = (
            f"{network.num_workers} workers with {_named(best)} would be {_times(speed)} as fast as "
            f"one machine and {_times(best.speed_vs_ddp)} as fast as plain DDP."
        )
    if speed < best.speed_vs_ddp:
        share = speed / best.speed_vs_ddp
        text += f" Plain DDP would be slower than one machine: {_times(share)} its speed."
    rate = break_even_rate(best, network)
    assert rate is not None, "the rate at hand suffices"
    compute_s = break_even_compute_s(best, network)
    return (
        f"{text} One machine wins with links below {format_rate(rate)}, or with steps that compute "
        f"for less than {format_seconds(compute_s)}."
    )


def _slower(
    predictions: Sequence[StepPrediction],
    best: StepPrediction,
    speed: float,
    network: Network,
) -> str:
    assert best.compute_s is not None
    text = (
        f"{network.num_workers} workers would be slower than one machine: even with {_named(best)} "
        f"a step takes {format_seconds(best.step_s)}, of which computing is "
        f"{format_seconds(best.compute_s)}; that is {_times(speed)} the speed of one machine."
    )
    long_enough = (
        f"steps that compute for more than {format_seconds(break_even_compute_s(best, network))}"
    )
    rates = [
        (rate, prediction)
        for prediction in predictions
        if (rate := break_even_rate(prediction, network)) is not None
    ]
    if not rates:
        return f"{text} No link rate would change that, only {long_enough}."
    rate, prediction = min(rates, key=lambda pair: pair[0])
    return (
        f"{text} What would change that: links of more than {format_rate(rate)} (with "
        f"{_named(prediction)}), or {long_enough}."
    )


def _is_plain_ddp(prediction: StepPrediction) -> bool:
    return (prediction.spec, prediction.exchange) == ("none", "ring")


def _named(prediction: StepPrediction) -> str:
    return f"{prediction.spec} by {prediction.exchange}"


def _times(ratio: float) -> str:
    return f"{ratio:.3g} times" if ratio < 999.5 else f"{ratio:,.0f} times"


def _at(network: Network, rate_bits_per_s: float) -> Network:
    links = tuple(Link(link.latency_s, rate_bits_per_s) for link in network.links)
    return replace(network, links=links)
