"""What a job is, and how every job is run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from talka.errors import TalkaError
from talka.events import (
    Comparison,
    Measured,
    Predicted,
    Run,
    Stream,
    progress_in_terminal,
    read_run,
)
from talka.machine import process_age_s

START = "start"
"""The part of a command before its job runs."""


class Job(Protocol):
    """A plan whose cost can be read before it runs."""

    name: str
    config: dict[str, Any]
    """Plain values, all that was resolved: it goes into config.json."""

    def explain(self) -> Sequence[Predicted]:
        """What each part will cost. Runs nothing but small samples."""
        ...

    def run(self, events: Stream) -> dict[str, Any]:
        """Do it; what comes back goes into result.json. Parts are phases of `events`."""
        ...


class Finished(NamedTuple):
    """A job that ran: where its run directory is, what came out, how good the prediction was."""

    dir: Path
    result: dict[str, Any]
    comparisons: list[Comparison]


def with_start(predicted: Sequence[Predicted]) -> list[Predicted]:
    """Add what this process has spent so far: each run of the command spends it again."""
    reason = "Python started, packages and kernels loaded, the plan made"
    return [Predicted(START, None, process_age_s(), reason), *predicted]


def total_seconds(predicted: Sequence[Predicted]) -> float:
    """Add up the seconds that are known; rows of single supersteps are inside of another row."""
    return sum(row.seconds or 0.0 for row in predicted if not row.cost_id.startswith("superstep/"))


def execute(job: Job, predicted: Sequence[Predicted], *, root: Path = Path("runs")) -> Finished:
    """Run a job in a run directory of its own, with progress in the terminal.

    A wrong input or option, which only shows once the job looks at its data, leaves no directory.
    """
    run = Run(job.name, job.config, root=root)
    try:
        with run:
            for prediction in predicted:
                run.stream.emit(prediction)
                if prediction.cost_id == START:
                    run.stream.emit(Measured(START, None, process_age_s()))
            with progress_in_terminal(run.stream):
                result = job.run(run.stream)
            run.finish(result)
    except TalkaError as error:
        if error.exit_code == 2:  # the caller can mend the input: there is no run to look at
            run.discard()
        raise
    return Finished(run.dir, result, read_run(run.dir).comparisons())
