"""Events of training steps."""

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


@register
@dataclass(frozen=True, slots=True)
class ResidualNorm(Event):
    """Size of the residuals of one worker: what its compressor has not sent yet."""

    step: int
    norm: float | None
    """L2 norm over all residuals; None if it is not finite."""
