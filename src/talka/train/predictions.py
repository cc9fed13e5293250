"""Predicted cost of a training step on P workers with each spec, against one machine and plain DDP.

    step = computing + encoding and decoding + network

Nothing overlaps in this model, so it is an upper estimate: DDP hands over one bucket of gradients
(25 MB) while the backward pass computes the next. If all gradients fit into one bucket, nothing can
overlap, as the bucket is complete when the backward pass ends: the estimate is then nearly exact.

Every worker has a batch as large as that of one machine, so P workers do P times the work in a step:
speed against one machine = P * computing / step, in samples per second (S1). The additional steps
that a lossy spec needs (S2) are not known before a run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from talka.compress import Layout
from talka.errors import InvalidValueError
from talka.exchange import CodecRates, Price, choices
from talka.exchange.registry import default_name
from talka.network import Network, all_reduce
from talka.network.timeline import Action, Compute, Together, timeline
from talka.train.codec_rates import profiled_rates
from talka.train.codecs import attached_codec

DEFAULT_SPECS = (
    "none",
    "fp16",
    "bf16",
    "onebit+ef",
    "uniform:3/max/512+ef",
    "qsgd:7",
    "topk:0.01+ef",
    "randomk:0.01+ef",
    "threshold:auto+ef",
    "powersgd:4",
)
CLEARLY_SHORTER = 0.95
"""Share of a step below which another exchange is worth naming."""


@dataclass(frozen=True, slots=True)
class StepPrediction:
    """Predicted step with one compressor and one exchange."""

    price: Price
    """Price of the exchange."""
    compute_s: float | None
    """Seconds that a worker computes per step; None if unknown: `step_s` is then the exchange."""
    step_s: float
    speed_vs_one: float | None
    """Samples per second relative to one machine; None if computing is unknown."""
    speed_vs_ddp: float
    """Samples per second relative to plain DDP."""
    alternatives: tuple["StepPrediction", ...] = ()
    """Predictions for the same compressor with other exchanges, cheapest first."""

    @property
    def spec(self) -> str:
        """Short form of the compressor."""
        return self.price.spec

    @property
    def exchange(self) -> str:
        """Name of the exchange."""
        return self.price.exchange

    @property
    def cheaper(self) -> "StepPrediction | None":
        """Shortest of the alternatives that are clearly shorter and do not sparsify twice."""
        shorter = [
            other
            for other in self.alternatives
            if not other.price.resparsifies and other.step_s < CLEARLY_SHORTER * self.step_s
        ]
        return shorter[0] if shorter else None


def predict_steps(
    layout: Layout,
    network: Network,
    *,
    compute_s: float | None,
    specs: Sequence[str] = DEFAULT_SPECS,
    codec_rates: Callable[[str], CodecRates] = profiled_rates,
    sample: Tensor | None = None,
) -> list[StepPrediction]:
    """Predict a step with each spec as `attach(ddp, spec)` runs it, in the order of `specs`.

    Each has the default exchange of its compressor, and the others as alternatives.

    codec_rates
        Called once per spec. By default the rates of the profile of this machine.
    sample
        One flat gradient, from which the size of payloads is computed that depend on the values.
    """
    if compute_s is not None and not compute_s > 0:
        raise InvalidValueError("compute_s", compute_s, "above 0, or None if unknown")
    num_values = sum(piece.num_values for piece in layout)
    codecs = {spec: attached_codec(spec) for spec in specs}  # checked before any is measured
    ddp_s = (compute_s or 0.0) + all_reduce(network, 4.0 * num_values).seconds

    def predicted(price: Price) -> StepPrediction:
        step_s = _step_s(network, compute_s or 0.0, price)
        speed_vs_one = None if compute_s is None else network.num_workers * compute_s / step_s
        return StepPrediction(
            price, compute_s, step_s, speed_vs_one, ddp_s / step_s if step_s else 1.0
        )

    rows = {}
    for spec, codec in codecs.items():
        rates = codec_rates(spec)
        prices = choices(codec, num_values, network, layout=layout, sample=sample, rates=rates)
        default = default_name(codec, network.num_workers)
        steps = {price.exchange: predicted(price) for price in prices}
        row = steps.pop(default)
        rows[spec] = replace(row, alternatives=tuple(steps.values()))
    return [rows[spec] for spec in specs]


def _step_s(network: Network, compute_s: float, price: Price) -> float:
    """Return the seconds of a step in which nothing overlaps."""
    step: list[Action] = [Compute(compute_s), Compute(price.codec_s), Together(price.network_s)]
    return timeline(network, [step] * network.num_workers).total_s


def fastest(predictions: Sequence[StepPrediction]) -> StepPrediction:
    """Return the prediction with the shortest step; the first of equally short ones."""
    return min(predictions, key=lambda prediction: prediction.step_s)
