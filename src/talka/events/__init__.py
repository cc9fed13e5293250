"""Events of a run: written as JSON lines, shown as progress bars, read by the report page."""

from talka.events.base import (
    EVENTS,
    Considered,
    Event,
    Failure,
    Measured,
    Noted,
    PhaseAdvanced,
    PhaseEnded,
    PhaseStarted,
    Predicted,
    ResidualNorm,
    RunEnded,
    RunStarted,
    Spilled,
    StepDone,
    SuperstepDone,
    TaskAgain,
    TasksRan,
    WorkerLost,
)
from talka.events.progress import progress_in_terminal
from talka.events.reader import Comparison, RunRecord, Stamped, compare, read_run
from talka.events.run import RUN_DIR_VARIABLE, Run
from talka.events.stream import Phase, Stream

__all__ = [
    "EVENTS",
    "RUN_DIR_VARIABLE",
    "Comparison",
    "Considered",
    "Event",
    "Failure",
    "Measured",
    "Noted",
    "Phase",
    "PhaseAdvanced",
    "PhaseEnded",
    "PhaseStarted",
    "Predicted",
    "ResidualNorm",
    "Run",
    "RunEnded",
    "RunRecord",
    "RunStarted",
    "Spilled",
    "Stamped",
    "StepDone",
    "Stream",
    "SuperstepDone",
    "TaskAgain",
    "TasksRan",
    "WorkerLost",
    "compare",
    "progress_in_terminal",
    "read_run",
]
