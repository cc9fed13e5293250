"""The events themselves: frozen dataclasses of plain values.

`part` is a stable id such as `step/exchange`, `superstep/3` or `stage/2/exchange`. What was
predicted for a part and what was measured for it meet on that id.
"""

from dataclasses import dataclass
from typing import Literal

Status = Literal["done", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class RunStarted:
    name: str


@dataclass(frozen=True, slots=True)
class RunEnded:
    status: Status


@dataclass(frozen=True, slots=True)
class Failure:
    """Something went wrong: one line for everybody, the traceback for whoever must mend it."""

    message: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Noted:
    """Something a person should know about a part of a job, which is not an error."""

    cost_id: str
    message: str


@dataclass(frozen=True, slots=True)
class Predicted:
    """What a part of a job will cost; None where nothing can be said in advance."""

    cost_id: str
    sent_bytes: float | None
    seconds: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Measured:
    """What that part did cost."""

    cost_id: str
    sent_bytes: float | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class PhaseStarted:
    """A part that takes a while begins; `total` is None where its length is not known."""

    cost_id: str
    total: float | None
    unit: str


@dataclass(frozen=True, slots=True)
class PhaseAdvanced:
    cost_id: str
    done: float


@dataclass(frozen=True, slots=True)
class PhaseEnded:
    cost_id: str


@dataclass(frozen=True, slots=True)
class TasksRan:
    """A stretch of tasks of one name on one worker; short ones are counted together.

    Start and end are in seconds since 1970, as `time.time` has them on every machine.
    """

    name: str
    worker: str
    count: int
    start_s: float
    end_s: float
    busy_s: float
    output_bytes: int


@dataclass(frozen=True, slots=True)
class TaskAgain:
    """A task runs once more: its output was lost, its worker died or it raised and may try again."""

    task: int
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class WorkerLost:
    worker: str
    reason: str


@dataclass(frozen=True, slots=True)
class Spilled:
    """Outputs went from memory to disk to keep the budget."""

    num_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class StepDone:
    """One training step of one worker: what its exchange sent, and where the time went."""

    step: int
    sent_bytes: int
    received_bytes: int
    compute_s: float
    """All but waiting for the exchange at the end of the backward pass."""
    encode_s: float
    exchange_s: float
    """In which the exchange's thread waited for the network or for others."""
    decode_s: float


@dataclass(frozen=True, slots=True)
class ResidualNorm:
    """How much this worker still has to say: the L2 norm of all its residuals.

    None if it is not finite any more.
    """

    step: int
    norm: float | None


@dataclass(frozen=True, slots=True)
class SuperstepDone:
    """One superstep of a graph program, over all partitions."""

    superstep: int
    num_active: int
    """Vertices that speak after it."""
    num_messages: int
    """That went from one partition to another."""
    sent_bytes: int
    edges: int
    """That were walked along."""
    pushed: int
    pulled: int
    """Partitions that went this way."""
    seconds: float


Event = (
    RunStarted
    | RunEnded
    | Failure
    | Noted
    | Predicted
    | Measured
    | PhaseStarted
    | PhaseAdvanced
    | PhaseEnded
    | TasksRan
    | TaskAgain
    | WorkerLost
    | Spilled
    | StepDone
    | ResidualNorm
    | SuperstepDone
)
EVENTS: dict[str, type[Event]] = {event.__name__: event for event in Event.__args__}
