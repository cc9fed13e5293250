"""Events of a run: written as JSON lines, shown as progress bars, read by the report page.

Here are the events that every run has. Those of a pillar are in its own module, such as
`talka.train.events`, and can be imported from here, too.
"""

from typing import Any

from talka.events.base import (
    Considered,
    Failure,
    Measured,
    Noted,
    PhaseAdvanced,
    PhaseEnded,
    PhaseStarted,
    Predicted,
    RunEnded,
    RunStarted,
)
from talka.events.costs import Comparison, compare
from talka.events.following import Follower, follow, read_run
from talka.events.parsing import Stamped, Unknown
from talka.events.progress import progress_in_terminal
from talka.events.record import Fold, RunRecord
from talka.events.registry import Event, find, register, registered
from talka.events.run import RUN_DIR_VARIABLE, Run
from talka.events.stream import Phase, Stream

__all__ = [
    "RUN_DIR_VARIABLE",
    "Comparison",
    "Considered",
    "Event",
    "Failure",
    "Fold",
    "Follower",
    "Measured",
    "Noted",
    "Phase",
    "PhaseAdvanced",
    "PhaseEnded",
    "PhaseStarted",
    "Predicted",
    "Run",
    "RunEnded",
    "RunRecord",
    "RunStarted",
    "Stamped",
    "Stream",
    "Unknown",
    "compare",
    "follow",
    "progress_in_terminal",
    "read_run",
    "register",
    "registered",
]


def __getattr__(name: str) -> Any:
    """Return an event of a pillar, which is imported at its first use."""
    kind = None if name.startswith("_") else find(name)
    if kind is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return kind.type
