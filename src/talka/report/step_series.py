"""Training steps as series of numbers, thinned to as many points as a plot can show.

events of all workers -> steps (means and sums over workers) -> at most MAX_POINTS points
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from talka.events import RunRecord
from talka.report.thinning import thinned
from talka.train.events import ResidualNorm, StepDone

KINDS = {
    "computing": "compute_s",
    "encoding": "encode_s",
    "exchanging": "wait_s",
    "decoding": "decode_s",
}
"""Kinds of work in a step, and the field of StepDone with the seconds of each."""


class StepPoint(NamedTuple):
    """One step of all workers, or, after thinning, the mean of several steps."""

    number: float
    seconds: dict[str, float]
    """Seconds by kind of work, averaged over the workers."""
    sent_bytes: float
    """Bytes sent by all workers together."""
    is_first: bool = False
    """True for the first step of a process, which includes building the model and reading data."""


class NormSeen(NamedTuple):
    """L2 norm of a worker's residuals after a step."""

    number: float
    norm: float


def steps_of(record: RunRecord) -> list[StepPoint]:
    """Return all steps of a run, in order."""
    by_number: defaultdict[int, list[StepDone]] = defaultdict(list)
    for _, number, event in _numbered(record):
        if isinstance(event, StepDone):
            by_number[number].append(event)
    return [
        StepPoint(
            number,
            {kind: fmean(getattr(done, field) for done in dones) for kind, field in KINDS.items()},
            sum(done.sent_bytes for done in dones),
            is_first=any(done.step == 1 for done in dones),
        )
        for number, dones in sorted(by_number.items())
    ]


def norms_of(record: RunRecord) -> dict[str, list[NormSeen]]:
    """Return residual norms by worker, without workers whose norms are all zero."""
    norms: defaultdict[str, list[NormSeen]] = defaultdict(list)
    for source, number, event in _numbered(record):
        if isinstance(event, ResidualNorm) and event.norm is not None:
            norms[source].append(NormSeen(number, event.norm))
    return {source: seen for source, seen in norms.items() if any(entry.norm for entry in seen)}


def num_workers_of(record: RunRecord) -> int:
    """Return the number of workers that reported at least one step."""
    return len({stamped.source for stamped in record.events if isinstance(stamped.event, StepDone)})


def thinned_steps(steps: Sequence[StepPoint]) -> list[StepPoint]:
    """Replace neighbouring steps by their mean if there are too many to plot."""
    return thinned(steps, _mean)


def thinned_norms(norms: Sequence[NormSeen]) -> list[NormSeen]:
    """Keep the last norm of each group of neighbours if there are too many to plot."""
    return thinned(norms, lambda group: group[-1])


def _mean(group: Sequence[StepPoint]) -> StepPoint:
    return StepPoint(
        fmean(step.number for step in group),
        {kind: fmean(step.seconds[kind] for step in group) for kind in KINDS},
        fmean(step.sent_bytes for step in group),
    )


def _numbered(record: RunRecord) -> Iterator[tuple[str, int, StepDone | ResidualNorm]]:
    """Yield source, step number and event of each step.

    If a source restarts at step 1, its numbers continue from the last step before the restart.
    """
    before: defaultdict[str, int] = defaultdict(int)
    last: defaultdict[str, int] = defaultdict(int)
    for _, source, event in record.events:
        if isinstance(event, StepDone):
            if event.step <= last[source]:
                before[source] += last[source]
            last[source] = event.step
        if isinstance(event, StepDone | ResidualNorm):
            yield source, before[source] + event.step, event
