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
from talka.exchange import Choice, choices
from talka.exchange.pricing.choose import rounded
from talka.network import Network, all_reduce
from talka.train.codec_rates import CodecRates, measure_codec

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


@dataclass(frozen=True, slots=True)
class StepPrediction:
    """Predicted cost of a step with one spec and one exchange."""

    spec: str
    exchange: str
    sent_bytes_per_worker: float
    """Bytes of payloads sent by the worker that sends most, including those inside a host."""
    compute_s: float | None
    """Seconds that a worker computes per step; None if unknown: `step_s` is then the exchange."""
    codec_s: float
    """Seconds of encoding and decoding, on the worker with most to do."""
    network_s: float
    step_s: float
    speed_vs_one: float | None
    """Samples per second relative to one machine; None if computing is unknown."""
    speed_vs_ddp: float
    """Samples per second relative to plain DDP."""
    reason: str
    payload_bytes: float
    """Bytes of one worker's whole payload."""
    resparsifies: bool
    """True if the exchange sparsifies the average a second time although it need not."""
    runners_up: tuple["StepPrediction", ...] = ()
    """Predictions for the same spec with other exchanges, cheapest first."""


def predict_steps(
    layout: Layout,
    network: Network,
    *,
    compute_s: float | None,
    specs: Sequence[str] = DEFAULT_SPECS,
    codec_rates: Callable[[str], CodecRates] | None = None,
    sample: Tensor | None = None,
) -> list[StepPrediction]:
    """Predict a step with each spec and its fastest exchange, in the order of `specs`.

    An exchange that would sparsify the average of a few workers a second time is listed only as a
    runner-up.

    codec_rates
        Called once per spec. By default the rates are measured on this machine.
    sample
        One flat gradient, from which the size of payloads is computed that depend on the values.
    """
    if compute_s is not None and not compute_s > 0:
        raise InvalidValueError("compute_s", compute_s, "above 0, or None if unknown")
    num_values = _num_values(layout)
    all_choices = {
        spec: choices(spec, num_values, network, layout=layout, sample=sample) for spec in specs
    }
    rates_of = {
        spec: measure_codec(spec, num_values, sample) if codec_rates is None else codec_rates(spec)
        for spec in all_choices  # `choices` has checked every spec
    }
    ddp_s = (compute_s or 0.0) + all_reduce(network, 4.0 * num_values).seconds

    def predicted(choice: Choice) -> StepPrediction:
        formula, rates = CODEC_SECONDS[choice.exchange], rates_of[choice.spec]
        codec_s = num_values * formula(rates, network.num_workers, len(network.links))
        return _prediction(choice, codec_s, compute_s=compute_s, ddp_s=ddp_s)

    return [_shortest([predicted(choice) for choice in all_choices[spec]]) for spec in specs]


def fastest(predictions: Sequence[StepPrediction]) -> StepPrediction:
    """Return the prediction with the shortest step; the first of equally short ones."""
    return min(predictions, key=lambda prediction: prediction.step_s)


def _two_phase(rates: CodecRates, num_workers: int, num_hosts: int) -> float:
    """Encode all; decode P payloads of 1/P and encode the average of that 1/P; decode all."""
    return (1 + 1 / num_workers) * rates.encode_s + 2 * rates.decode_s


def _all_gather(rates: CodecRates, num_workers: int, num_hosts: int) -> float:
    """Encode once, and decode every worker's payload."""
    return rates.encode_s + num_workers * rates.decode_s


def _master(rates: CodecRates, num_workers: int, num_hosts: int) -> float:
    """Encode; the master decodes P payloads and encodes their average; decode the average."""
    return 2 * rates.encode_s + (num_workers + 1) * rates.decode_s


def _hierarchical(rates: CodecRates, num_workers: int, num_hosts: int) -> float:
    """Two phases among the hosts. Sums inside a host are ignored: they are plain additions."""
    return _two_phase(rates, num_hosts, num_hosts)


def _global_topk(rates: CodecRates, num_workers: int, num_hosts: int) -> float:
    """Follow the longest path up the tree, of L = ceil(log2 P) levels, then decode once.

    A worker with c children decodes c + 1 payloads and encodes their sum. On that path c is 1 to L
    if P is a power of two; otherwise this is an upper bound.
    """
    levels = (num_workers - 1).bit_length()
    decodes = levels * (levels + 1) // 2 + levels + 1
    return (levels + 1) * rates.encode_s + decodes * rates.decode_s


def _converted(rates: CodecRates, num_workers: int, num_hosts: int) -> float:
    """Only convert (ring, direct and tree): sums on the way are ignored, as for plain DDP."""
    return rates.convert_s


def _low_rank(rates: CodecRates, num_workers: int, num_hosts: int) -> float:
    """Compute both factors, then their product."""
    return rates.encode_s + rates.decode_s


CODEC_SECONDS: dict[str, Callable[[CodecRates, int, int], float]] = {
    "two-phase": _two_phase,
    "all-gather": _all_gather,
    "master": _master,
    "hierarchical": _hierarchical,
    "global-topk": _global_topk,
    "ring": _converted,
    "direct": _converted,
    "tree": _converted,
    "low-rank": _low_rank,
}
"""Codec seconds per value on the worker with most to do, from rates, workers P and hosts."""


def _prediction(
    choice: Choice, codec_s: float, *, compute_s: float | None, ddp_s: float
) -> StepPrediction:
    step_s = (compute_s or 0.0) + codec_s + choice.cost.seconds
    num_workers = len(choice.cost.sent_bytes_by_rank)
    return StepPrediction(
        spec=choice.spec,
        exchange=choice.exchange,
        sent_bytes_per_worker=choice.cost.max_sent_bytes,
        compute_s=compute_s,
        codec_s=codec_s,
        network_s=choice.cost.seconds,
        step_s=step_s,
        speed_vs_one=None if compute_s is None else num_workers * compute_s / step_s,
        speed_vs_ddp=ddp_s / step_s if step_s else 1.0,
        reason=choice.reason,
        payload_bytes=choice.payload_bytes,
        resparsifies=choice.resparsifies,
    )


def _shortest(by_exchange: Sequence[StepPrediction]) -> StepPrediction:
    best, *others = sorted(by_exchange, key=lambda row: (row.resparsifies, rounded(row.step_s)))
    return replace(best, runners_up=tuple(others))


def _num_values(layout: Layout) -> int:
    return sum(piece.num_values for piece in layout)
