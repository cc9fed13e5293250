"""Events of tasks and of the workers that run them."""

from dataclasses import dataclass

from talka.events.registry import Event, register


@register
@dataclass(frozen=True, slots=True)
class TasksRan(Event):
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


@register
@dataclass(frozen=True, slots=True)
class TaskAgain(Event):
    """A task is started again."""

    task: int
    """Number of the task in its engine."""
    name: str
    reason: str
    """Why: its output was lost, its worker died, or it raised and has retries left."""


@register
@dataclass(frozen=True, slots=True)
class WorkerLost(Event):
    """A worker died. Its task is started again if it has retries left."""

    worker: str
    reason: str
    """Cause of death, such as `killed by SIGKILL, perhaps because memory ran out`."""


@register
@dataclass(frozen=True, slots=True)
class RankLost(Event):
    """A rank of a gang died or raised, and the others continue (`on_failure="report"`)."""

    rank: int
    role: str
    reason: str
    """How it ended, such as `died (exit code 7)`."""


@register
@dataclass(frozen=True, slots=True)
class Spilled(Event):
    """An output was moved from memory to disk to stay within the memory budget."""

    num_bytes: int
    """Bytes that were written."""
    seconds: float
    """Seconds that the write took."""
