"""The events that every run has. A pillar has its own, such as `talka.train.events`.

In `events.jsonl` each event is one line with a JSON object: `event` is the name of the class, `time_s`
the seconds since 1970 at which it was written, and the other keys are the fields below. A float that
is not finite is written as null.

A `cost_id` is a stable id of a part of a job that has a cost, such as
`graph/superstep/3`; it begins with the name of the job. Predicted and measured costs are matched by it.
"""

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from talka.events.registry import Event, register

Status = Literal["done", "failed", "interrupted"]
"""End of a run: `interrupted` by Ctrl+C or a signal, `failed` by any other error."""
_PART: Final = {"part": "cost_id"}


@register
@dataclass(frozen=True, slots=True)
class RunStarted(Event):
    """A run started. This is the first event of its driver."""

    name: str
    """Name of the job, such as `embed`."""


@register
@dataclass(frozen=True, slots=True)
class RunEnded(Event):
    """A run ended. This is the last event of its driver; a killed run has none."""

    status: Status


@register
@dataclass(frozen=True, slots=True)
class Failure(Event):
    """An error ended the run."""

    message: str
    """Text of the error."""
    detail: str = ""
    """Traceback of the error, for developers."""


@register
@dataclass(frozen=True, slots=True)
class Noted(Event):
    """A remark for the user about a part of a job; not an error."""

    FORMER_NAMES: ClassVar[dict[str, str]] = _PART

    cost_id: str
    message: str


@register
@dataclass(frozen=True, slots=True)
class Predicted(Event):
    """Predicted cost of a part of a job."""

    FORMER_NAMES: ClassVar[dict[str, str]] = _PART

    cost_id: str
    sent_bytes: float | None
    """Bytes that will be sent; None if this cannot be predicted."""
    seconds: float | None
    """Seconds that the part will take; None if this cannot be predicted."""
    reason: str
    """How the prediction was made, or why there is none."""
    memory_bytes: float | None = None
    """Peak memory in bytes of one process; None if this cannot be predicted."""


@register
@dataclass(frozen=True, slots=True)
class Considered(Event):
    """A choice for a part of a job that was not taken."""

    cost_id: str
    choice: str
    """Name of the choice, such as that of an exchange."""
    sent_bytes: float | None
    """Bytes that it would send; None if this cannot be predicted."""
    seconds: float | None
    """Seconds that it would take; None if this cannot be predicted."""
    why_not: str
    """Why it was not taken."""


@register
@dataclass(frozen=True, slots=True)
class Measured(Event):
    """Measured cost of a part of a job.

    A part that was repeated has several of these events, and each rank that measured it has its own.
    """

    FORMER_NAMES: ClassVar[dict[str, str]] = _PART

    cost_id: str
    sent_bytes: float | None
    """Bytes that this writer sent; None if they were not counted."""
    seconds: float | None
    """Seconds that the part took; None if they were not measured."""


@register
@dataclass(frozen=True, slots=True)
class PhaseStarted(Event):
    """A part of a job with a progress bar started."""

    FORMER_NAMES: ClassVar[dict[str, str]] = _PART

    cost_id: str
    total: float | None
    """Amount of work in `unit`; None if it is not known."""
    unit: str
    """Unit of the progress bar, such as `pairs`."""


@register
@dataclass(frozen=True, slots=True)
class PhaseAdvanced(Event):
    """Progress of a phase, written a few times per second at most."""

    FORMER_NAMES: ClassVar[dict[str, str]] = _PART

    cost_id: str
    done: float
    """Amount of work done so far, in the unit of `PhaseStarted`."""


@register
@dataclass(frozen=True, slots=True)
class PhaseEnded(Event):
    """A phase ended, with or without an error. Without one, `Measured` follows."""

    FORMER_NAMES: ClassVar[dict[str, str]] = _PART

    cost_id: str
