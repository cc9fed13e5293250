"""Predicted steps of several rhythms with several compressors, against one machine and plain DDP."""

from collections.abc import Sequence
from typing import NamedTuple

from talka.exchange import Price
from talka.network import Network
from talka.train.codecs import attached_codec
from talka.train.predictions import StepPrediction
from talka.train.rhythms.local_sgd import check_change_codec
from talka.train.rhythms.pricing import RhythmPrice, extras_price, rhythm_price
from talka.train.rhythms.short_forms import RhythmConfig
from talka.units import format_seconds


class RhythmPrediction(NamedTuple):
    """Price of a rhythm, compared with other ways to train."""

    price: RhythmPrice
    speed_vs_one: float
    """Samples per second relative to one machine."""
    speed_vs_ddp: float
    """Samples per second relative to plain DDP."""


def predict_rhythms(
    rhythms: Sequence[RhythmConfig],
    rows: Sequence[StepPrediction],
    network: Network,
    *,
    num_buffer_values: int = 0,
) -> list[RhythmPrediction]:
    """Predict a step of each rhythm with the compressors of `rows`, results of `predict_steps`.

    The computing time in `rows` must be known. Raises SpecError for a compressor that a rhythm
    refuses.
    """
    extras = extras_price(num_buffer_values, network)
    return [_predicted(rhythm, row, network, extras) for rhythm in rhythms for row in rows]


def _predicted(
    rhythm: RhythmConfig, row: StepPrediction, network: Network, extras: Price | None
) -> RhythmPrediction:
    assert row.compute_s is not None, "the caller checks it"
    if rhythm.name == "local-sgd":
        check_change_codec(attached_codec(row.spec))
    price = rhythm_price(rhythm, row.price, row.compute_s, extras=extras)
    ddp_s = row.speed_vs_ddp * row.step_s
    speed_vs_one = network.num_workers * row.compute_s / price.step_s
    return RhythmPrediction(price, speed_vs_one, ddp_s / price.step_s)


def fastest_rhythm(predictions: Sequence[RhythmPrediction]) -> RhythmPrediction:
    """Return the prediction with the shortest step; the first of equally short ones."""
    return min(predictions, key=lambda prediction: prediction.price.step_s)


def rhythm_verdict(predictions: Sequence[RhythmPrediction], network: Network) -> str:
    """Summarize the fastest rhythm in one sentence."""
    best = fastest_rhythm(predictions)
    return (
        f"{network.num_workers} workers with {best.price.rhythm} and {best.price.spec} by "
        f"{best.price.exchange} would take {format_seconds(best.price.step_s)} per step: "
        f"{best.speed_vs_one:.3g} times as fast as one machine and {best.speed_vs_ddp:,.3g} times as "
        "fast as plain DDP, in samples per second."
    )
