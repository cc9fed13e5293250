"""Training steps as series of numbers, thinned to what an eye can tell apart.

events of all workers -> steps (means and sums over workers) -> at most MAX_POINTS of them
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import NamedTuple, TypeVar

from talka.events import ResidualNorm, RunRecord, StepDone

T = TypeVar("T")

MAX_POINTS = 500
KINDS = {
    "computing": "compute_s",
    "encoding": "encode_s",
    "exchanging": "wait_s",
    "decoding": "decode_s",
}
"""Where the time of a step goes, and the field of StepDone that says so."""


class Step(NamedTuple):
    """One step of all workers, or, thinned, the mean of several."""

    number: float
    seconds: dict[str, float]
    """By kind, the mean of all workers."""
    sent_bytes: float
    """Of all workers together."""
    is_first: bool = False
    """Of a process: it includes the start, when models are built and data is read."""


class NormSeen(NamedTuple):
    number: float
    norm: float


def steps_of(record: RunRecord) -> list[Step]:
    """All steps, in order."""
    done: defaultdict[int, list[StepDone]] = defaultdict(list)
    for _, number, event in _numbered(record):
        if isinstance(event, StepDone):
            done[number].append(event)
    return [
        Step(
            number,
            {kind: fmean(getattr(one, field) for one in of) for kind, field in KINDS.items()},
            sum(one.sent_bytes for one in of),
            is_first=any(one.step == 1 for one in of),
        )
        for number, of in sorted(done.items())
    ]


def norms_of(record: RunRecord) -> dict[str, list[NormSeen]]:
    """Residual norms by worker, those that have any residual."""
    norms: defaultdict[str, list[NormSeen]] = defaultdict(list)
    for source, number, event in _numbered(record):
        if isinstance(event, ResidualNorm) and event.norm is not None:
            norms[source].append(NormSeen(number, event.norm))
    return {source: seen for source, seen in norms.items() if any(one.norm for one in seen)}


def num_workers_of(record: RunRecord) -> int:
    return len({one.source for one in record.events if isinstance(one.event, StepDone)})


def thinned(steps: Sequence[Step], *, max_points: int = MAX_POINTS) -> list[Step]:
    """At most so many: neighbours become their mean."""
    return [
        Step(
            fmean(step.number for step in few),
            {kind: fmean(step.seconds[kind] for step in few) for kind in KINDS},
            fmean(step.sent_bytes for step in few),
        )
        for few in _groups(steps, max_points)
    ]


def thinned_norms(norms: Sequence[NormSeen], *, max_points: int = MAX_POINTS) -> list[NormSeen]:
    """At most so many, of which each was seen."""
    return [few[-1] for few in _groups(norms, max_points)]


def _groups(series: Sequence[T], max_groups: int) -> list[Sequence[T]]:
    size = -(-len(series) // max_groups)
    return [series[start : start + size] for start in range(0, len(series), size or 1)]


def _numbered(record: RunRecord) -> Iterator[tuple[str, int, StepDone | ResidualNorm]]:
    """Source, number and event; a source that starts again at step 1 goes on counting."""
    before: defaultdict[str, int] = defaultdict(int)
    last: defaultdict[str, int] = defaultdict(int)
    for _, source, event in record.events:
        if isinstance(event, StepDone):
            if event.step <= last[source]:
                before[source] += last[source]
            last[source] = event.step
        if isinstance(event, StepDone | ResidualNorm):
            yield source, before[source] + event.step, event
