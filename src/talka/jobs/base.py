"""`execute`, which runs any plan in a run directory and compares its cost with the prediction."""

import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from talka.errors import TalkaError
from talka.events import Comparison, Measured, Run, progress_in_terminal, read_run
from talka.machine import process_age_s
from talka.plans import Part, Plan
from talka.profile import this_machine

_MIN_JUDGED_S = 0.1  # shorter times are mostly noise


class Finished(NamedTuple):
    """The outcome of a job: its run directory, its result, and predicted beside measured costs."""

    dir: Path
    result: dict[str, Any]
    comparisons: list[Comparison]


def with_start(plan: Plan) -> Part:
    """Explain a plan, and add the time this process has spent so far, planning included.

    Every run of the command spends it again.
    """
    whole = plan.explain()
    reason = "starting Python, loading packages and kernels, making the plan"
    start = Part(cost_id=_start_of(whole), seconds=_started_s(plan), reason=reason)
    return whole.starting_with(start)


def execute(plan: Plan, predicted: Part | None = None, *, root: Path = Path("runs")) -> Finished:
    """Run a plan in a new run directory, with progress in the terminal.

    If the job rejects its input or options after it has read the data, the directory is removed.

    predicted
        What `plan.explain` returned, if it was called before, perhaps with more parts.
    """
    predicted = plan.explain() if predicted is None else predicted
    run = Run(plan.name, plan.config, root=root)
    try:
        with run:
            for event in predicted.events():
                run.stream.emit(event)
            before_s = process_age_s()
            if any(part.cost_id == _start_of(predicted) for part in predicted.parts):
                run.stream.emit(Measured(_start_of(predicted), None, _started_s(plan)))
                before_s = this_machine().measuring_s
            with progress_in_terminal(run.stream):
                result = plan.run(run.stream)
            run.stream.emit(Measured(predicted.cost_id, None, process_age_s() - before_s))
            run.finish(result)
    except TalkaError as error:
        if error.exit_code == 2:  # the user has to correct the input, and nothing was run
            run.discard()
        raise
    comparisons = read_run(run.dir).comparisons()
    _judge_profile(predicted, comparisons)
    return Finished(run.dir, result, comparisons)


def _start_of(whole: Part) -> str:
    return f"{whole.cost_id}/start"


def _started_s(plan: Plan) -> float:
    return max(process_age_s() - plan.planned_s - this_machine().measuring_s, 0.0)


def _judge_profile(predicted: Part, comparisons: Sequence[Comparison]) -> None:
    """Compare predictions with measurements, so that wrong trials are repeated."""
    measured_s = {
        cost.cost_id: cost.measured.seconds
        for cost in comparisons
        if cost.measured is not None and cost.measured.seconds is not None
    }
    ratios: dict[str, list[float]] = defaultdict(list)
    for part in predicted.walk():
        seconds = measured_s.get(part.cost_id)
        if seconds and part.seconds and max(seconds, part.seconds) > _MIN_JUDGED_S:
            for trial in part.trials:
                ratios[trial].append(seconds / part.seconds)
    this_machine().judge({name: statistics.median(values) for name, values in ratios.items()})
