"""What a training step of P workers would cost with each spec, against one machine and plain DDP.

    step = computing + encoding and decoding + network

Nothing overlaps in this model, so it is an upper estimate: DDP hands over one bucket of gradients
(25 MB) while the backward pass works on the next. A model whose gradients fill one bucket has
nothing to overlap with, as the bucket is full when the backward pass ends: there it is nearly exact.

Every worker has a batch of its own, as large as that of one machine, so P workers do P times the
work in a step: speed against one machine = P * computing / step, in samples a second (S1). What a
lossy spec costs in further steps (S2) is not known before a run.
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
    """One spec by one exchange."""

    spec: str
    exchange: str
    sent_bytes_per_worker: float
    """Payloads alone, of the worker that sends most; what stays inside a host counts, too."""
    compute_s: float | None
    """None if unknown: the step is then what the exchange takes."""
    codec_s: float
    network_s: float
    step_s: float
    speed_vs_one: float | None
    """Samples a second, of one machine's; None if computing is unknown."""
    speed_vs_ddp: float
    reason: str
    payload_bytes: float
    """Of one worker's whole payload."""
    resparsifies: bool
    """Loses more of a sparse payload than it has to."""
    runners_up: tuple["StepPrediction", ...] = ()
    """The same spec by other exchanges, cheapest first."""


def predict_steps(
    layout: Layout,
    network: Network,
    *,
    compute_s: float | None,
    specs: Sequence[str] = DEFAULT_SPECS,
    codec_rates: Callable[[str], CodecRates] | None = None,
    sample: Tensor | None = None,
) -> list[StepPrediction]:
    """A step with each spec, by the exchange that makes it shortest; in the order of `specs`.

    What would cut sparse payloads of a few workers once more is only ever a runner-up.

    `codec_rates` is asked once for every spec; unless given, they are measured here and now. A
    `sample`, one gradient as flat as the layout, says how large payloads are that depend on it.
    """
    if compute_s is not None and not compute_s > 0:
        raise InvalidValueError("compute_s", compute_s, "above 0, or None if unknown")
    num_values = _num_values(layout)
    all_choices = {
        spec: choices(spec, num_values, network, layout=layout, sample=sample) for spec in specs
    }
    rates_of = {
        spec: measure_codec(spec, num_values, sample) if codec_rates is None else codec_rates(spec)
        for spec in all_choices  # by now every spec is known to be one
    }
    ddp_s = (compute_s or 0.0) + all_reduce(network, 4.0 * num_values).seconds

    def predicted(choice: Choice) -> StepPrediction:
        formula, rates = CODEC_SECONDS[choice.exchange], rates_of[choice.spec]
        codec_s = num_values * formula(rates, network.num_workers, len(network.links))
        return _prediction(choice, codec_s, compute_s=compute_s, ddp_s=ddp_s)

    return [_shortest([predicted(choice) for choice in all_choices[spec]]) for spec in specs]


def fastest(predictions: Sequence[StepPrediction]) -> StepPrediction:
    """The shortest step; of equals, the first."""
    return min(predictions, key=lambda one: one.step_s)


def _two_phase(rates: CodecRates, num_workers: int, num_hosts: int) -> float:
    """Encode all; decode P payloads of 1/P, encode that 1/P again; decode all."""
    return (1 + 1 / num_workers) * rates.encode_s + 2 * rates.decode_s


def _all_gather(rates: CodecRates, num_workers: int, num_hosts: int) -> float:
    """Encode once, decode every worker's payload."""
    return rates.encode_s + num_workers * rates.decode_s


def _master(rates: CodecRates, num_workers: int, num_hosts: int) -> float:
    """Encode; the master decodes P payloads and encodes their average; decode that."""
    return 2 * rates.encode_s + (num_workers + 1) * rates.decode_s


def _hierarchical(rates: CodecRates, num_workers: int, num_hosts: int) -> float:
    """Two-phase among the leaders of hosts. Sums inside a host are left out: plain additions."""
    return _two_phase(rates, num_hosts, num_hosts)


def _global_topk(rates: CodecRates, num_workers: int, num_hosts: int) -> float:
    """The longest way up the tree, of L = ceil(log2 P) levels, then one decode.

    A worker with c children decodes c + 1 payloads and encodes their sum; on that way c is 1 to L
    if P is a power of two, and less is done else.
    """
    levels = (num_workers - 1).bit_length()
    decodes = levels * (levels + 1) // 2 + levels + 1
    return (levels + 1) * rates.encode_s + decodes * rates.decode_s


def _converted(rates: CodecRates, num_workers: int, num_hosts: int) -> float:
    """Ring, direct and tree: only the conversion; sums on the way are left out, as in plain DDP."""
    return rates.convert_s


def _low_rank(rates: CodecRates, num_workers: int, num_hosts: int) -> float:
    """Both factors, then their product."""
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
"""Seconds a value, on the worker with most to do, by the numbers of workers P and of hosts."""


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


def _shortest(of_exchanges: Sequence[StepPrediction]) -> StepPrediction:
    best, *others = sorted(of_exchanges, key=lambda one: (one.resparsifies, rounded(one.step_s)))
    return replace(best, runners_up=tuple(others))


def _num_values(layout: Layout) -> int:
    return sum(piece.num_values for piece in layout)
