"""The `Job` protocol, and `execute`, which runs any job in a run directory."""

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
"""Cost id of the time between the start of the process and the start of its job."""


class Job(Protocol):
    """A job whose cost can be predicted before it runs."""

    name: str
    config: dict[str, Any]
    """The resolved configuration as plain values; it is written to config.json."""

    def explain(self) -> Sequence[Predicted]:
        """Predict the cost of each phase. Runs only small samples."""
        ...

    def run(self, events: Stream) -> dict[str, Any]:
        """Run the job with its phases as phases of `events`; the result goes into result.json."""
        ...


class Finished(NamedTuple):
    """The outcome of a job: its run directory, its result, and predicted beside measured costs."""

    dir: Path
    result: dict[str, Any]
    comparisons: list[Comparison]


def with_start(predicted: Sequence[Predicted]) -> list[Predicted]:
    """Add the time this process has spent so far, as every run of the command spends it again."""
    reason = "starting Python, loading packages and kernels, making the plan"
    return [Predicted(START, None, process_age_s(), reason), *predicted]


def total_seconds(predicted: Sequence[Predicted]) -> float:
    """Sum the known seconds; single supersteps are left out, as another row includes them."""
    return sum(row.seconds or 0.0 for row in predicted if not row.cost_id.startswith("superstep/"))


def execute(job: Job, predicted: Sequence[Predicted], *, root: Path = Path("runs")) -> Finished:
    """Run a job in a new run directory, with progress in the terminal.

    If the job rejects its input or options after it has read the data, the directory is removed.
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
        if error.exit_code == 2:  # the user has to correct the input, and nothing was run
            run.discard()
        raise
    return Finished(run.dir, result, read_run(run.dir).comparisons())
