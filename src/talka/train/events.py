"""Events of training steps and rounds, and metrics that training scripts log."""

from dataclasses import dataclass
from typing import ClassVar

from talka.events.registry import Event, register


@register
@dataclass(frozen=True, slots=True)
class StepDone(Event):
    """One worker finished one training step."""

    FORMER_NAMES: ClassVar[dict[str, str]] = {"exchange_s": "wait_s"}

    step: int
    """Number of the step; the first is 1."""
    sent_bytes: int
    """Bytes that the exchange of this worker sent in this step."""
    received_bytes: int
    """Bytes that the exchange of this worker received in this step."""
    compute_s: float
    """Seconds of the step without the wait for the exchange at the end of the backward pass."""
    encode_s: float
    """Seconds spent encoding gradients into payloads."""
    wait_s: float
    """Seconds the exchange thread waited for the network or for other workers."""
    decode_s: float
    """Seconds spent decoding received payloads."""
    after_compute_s: float | None = None
    """Seconds from the end of computing to the end of the exchange; None in older runs."""


@register
@dataclass(frozen=True, slots=True)
class RoundDone(Event):
    """One worker finished one synchronisation of a rhythm that does not average in every step."""

    rhythm: str
    """Name of the rhythm."""
    round: int
    """Number of the round; the first is 1."""
    num_steps: int
    """Number of optimizer steps of this worker since the last round."""
    staleness: int
    """Number of steps by which the result is applied late."""
    sent_bytes: int
    """Bytes that this worker sent in this round."""
    received_bytes: int
    """Bytes that this worker received in this round."""
    compute_s: float
    """Seconds of the steps, without the wait for the exchange."""
    encode_s: float
    """Seconds spent encoding payloads."""
    wait_s: float
    """Seconds the exchange thread waited for the network or for other workers."""
    decode_s: float
    """Seconds spent decoding received payloads."""
    after_compute_s: float | None = None
    """Seconds from the end of computing to the end of the exchange; None in older runs."""


@register
@dataclass(frozen=True, slots=True)
class EpochDone(Event):
    """All workers of `talka.train.fit` finished an epoch; written by rank 0."""

    IS_PROGRESS: ClassVar[bool] = True

    epoch: int
    """Number of the epoch; the first is 1."""
    loss: float | None
    """Mean loss over the samples of the epoch."""
    validation_loss: float | None
    """Mean loss over the validation samples; None without any."""
    accuracy: float | None
    """Share of samples that were classified correctly; None if it was not asked for."""
    learning_rate: float | None
    """Learning rate of the last step."""
    seconds: float
    """Seconds of the epoch."""


@register
@dataclass(frozen=True, slots=True)
class ResidualNorm(Event):
    """Size of the residuals of one worker: what its compressor has not sent yet."""

    step: int
    norm: float | None
    """L2 norm over all residuals; None if it is not finite."""


@register
@dataclass(frozen=True, slots=True)
class MetricsLogged(Event):
    """A rank logged a metric with `talka.train.log`, at most ten of these per second and metric."""

    name: str
    """Name of the metric, such as `loss`."""
    value: float | None
    """Last value that was logged; None if it is not finite."""
    step: int | None
    """Step that was given with it; None if none was."""
    epoch: float | None
    """Epoch that was given with it; None if none was."""
    num_values: int
    """Number of values since the last event, of which this is the last."""
