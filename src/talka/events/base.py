"""The events of a run: frozen dataclasses of plain values.

In `events.jsonl` each event is one line with a JSON object: `event` is the name of the class, `time_s`
the seconds since 1970 at which it was written, and the other keys are the fields below. A float that
is not finite is written as null.

A `cost_id` is a stable id of a part of a job that has a cost, such as
`graph/superstep/3`; it begins with the name of the job. Predicted and measured costs are matched by it.
"""

from dataclasses import dataclass
from typing import Literal

Status = Literal["done", "failed", "interrupted"]
"""End of a run: `interrupted` by Ctrl+C or a signal, `failed` by any other error."""


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run started. This is the first event of its driver."""

    name: str
    """Name of the job, such as `embed`."""


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run ended. This is the last event of its driver; a killed run has none."""

    status: Status


@dataclass(frozen=True, slots=True)
class Failure:
    """An error ended the run."""

    message: str
    """Text of the error."""
    detail: str = ""
    """Traceback of the error, for developers."""


@dataclass(frozen=True, slots=True)
class Noted:
    """A remark for the user about a part of a job; not an error."""

    cost_id: str
    message: str


@dataclass(frozen=True, slots=True)
class Predicted:
    """Predicted cost of a part of a job."""

    cost_id: str
    sent_bytes: float | None
    """Bytes that will be sent; None if this cannot be predicted."""
    seconds: float | None
    """Seconds that the part will take; None if this cannot be predicted."""
    reason: str
    """How the prediction was made, or why there is none."""
    memory_bytes: float | None = None
    """Peak memory in bytes of one process; None if this cannot be predicted."""


@dataclass(frozen=True, slots=True)
class Considered:
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


@dataclass(frozen=True, slots=True)
class Measured:
    """Measured cost of a part of a job.

    A part that was repeated has several of these events, and each rank that measured it has its own.
    """

    cost_id: str
    sent_bytes: float | None
    """Bytes that this writer sent; None if they were not counted."""
    seconds: float | None
    """Seconds that the part took; None if they were not measured."""


@dataclass(frozen=True, slots=True)
class PhaseStarted:
    """A part of a job with a progress bar started."""

    cost_id: str
    total: float | None
    """Amount of work in `unit`; None if it is not known."""
    unit: str
    """Unit of the progress bar, such as `pairs`."""


@dataclass(frozen=True, slots=True)
class PhaseAdvanced:
    """Progress of a phase, written a few times per second at most."""

    cost_id: str
    done: float
    """Amount of work done so far, in the unit of `PhaseStarted`."""


@dataclass(frozen=True, slots=True)
class PhaseEnded:
    """A phase ended, with or without an error. Without one, `Measured` follows."""

    cost_id: str


@dataclass(frozen=True, slots=True)
class TasksRan:
    """Tasks of one name ran on one worker; consecutive short tasks are combined into one event."""

    name: str
    """Name of the tasks: that of their function, unless the caller gave another."""
    worker: str
    """Worker that ran them: `thread-0`, `process-0`, or on Ray its host name and process id."""
    count: int
    """Number of tasks."""
    start_s: float
    """Seconds since 1970 at which the first task started, by the clock of its machine."""
    end_s: float
    """Seconds since 1970 at which the last task ended, by the clock of its machine."""
    busy_s: float
    """Seconds that the tasks took, without the pauses between them."""
    output_bytes: int
    """Bytes of all outputs of these tasks."""


@dataclass(frozen=True, slots=True)
class TaskAgain:
    """A task is started again."""

    task: int
    """Number of the task in its engine."""
    name: str
    reason: str
    """Why: its output was lost, its worker died, or it raised and has retries left."""


@dataclass(frozen=True, slots=True)
class WorkerLost:
    """A worker died. Its task is started again if it has retries left."""

    worker: str
    reason: str
    """Cause of death, such as `killed by SIGKILL, perhaps because memory ran out`."""


@dataclass(frozen=True, slots=True)
class Spilled:
    """An output was moved from memory to disk to stay within the memory budget."""

    num_bytes: int
    """Bytes that were written."""
    seconds: float
    """Seconds that the write took."""


@dataclass(frozen=True, slots=True)
class StepDone:
    """One worker finished one training step."""

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


@dataclass(frozen=True, slots=True)
class ResidualNorm:
    """Size of the residuals of one worker: what its compressor has not sent yet."""

    step: int
    norm: float | None
    """L2 norm over all residuals; None if it is not finite."""


@dataclass(frozen=True, slots=True)
class SuperstepDone:
    """All partitions finished one superstep of a graph program."""

    superstep: int
    """Number of the superstep; the first is 0, and a resumed run continues to count."""
    num_active: int
    """Vertices that are active after the superstep."""
    num_messages: int
    """Messages from one partition to another."""
    sent_bytes: int
    """Bytes sent from one partition to another."""
    edges: int
    """Edges that were traversed."""
    pushed: int
    """Partitions that pushed messages along the edges of active vertices."""
    pulled: int
    """Partitions that pulled messages along all edges into their vertices."""
    seconds: float
    """Seconds from the start of the superstep to its end."""


Event = (
    RunStarted
    | RunEnded
    | Failure
    | Noted
    | Predicted
    | Considered
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
