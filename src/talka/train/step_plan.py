"""The plan of a training step: its parts with the fastest compressor, and the choices that lost."""

from collections.abc import Sequence

from talka.plans import Alternative, Part
from talka.train.codec_rates import codec_trial
from talka.train.predictions import StepPrediction, fastest


def plan_of_step(predictions: Sequence[StepPrediction]) -> Part:
    """Return the plan of a step with the fastest of some predictions.

    The others lost, and so did other exchanges for the same compressor.
    """
    best = fastest(predictions)
    price = best.price
    parts = [
        Part(
            cost_id="train/step/codec",
            seconds=price.codec_s,
            reason="encoding and decoding on the worker with most to do",
            trials=(codec_trial(best.spec).name,),
        ),
        Part(
            cost_id="train/step/exchange",
            seconds=price.network_s,
            sent_bytes=price.sent_bytes,
            reason=price.reason,
        ),
    ]
    if best.compute_s is not None:
        parts.insert(0, Part(cost_id="train/step/compute", seconds=best.compute_s, reason="given"))
    others = [row for row in predictions if row is not best] + list(best.alternatives)
    return Part(
        cost_id="train/step",
        seconds=best.step_s,
        sent_bytes=price.sent_bytes,
        choice=_named(best),
        alternatives=tuple(_lost(row, best) for row in sorted(others, key=lambda row: row.step_s)),
        parts=tuple(parts),
    )


def _lost(row: StepPrediction, best: StepPrediction) -> Alternative:
    why_not = f"a step takes {row.step_s / best.step_s:.3g} times as long"
    if row.price.resparsifies:
        why_not = "sparsifies the average a second time"
    return Alternative(_named(row), why_not, row.step_s, row.price.sent_bytes)


def _named(row: StepPrediction) -> str:
    return f"{row.spec} by {row.exchange}"
