"""Training steps as series of numbers, thinned to as many points as a plot can show.

events of all workers -> steps (means and sums over workers) -> at most MAX_POINTS points
"""

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean
from typing import ClassVar, NamedTuple

from talka.events import Event, Stamped
from talka.report.plotting.thinning import thinned
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


class StepSeries:
    """Steps and residual norms, summed over workers while they arrive."""

    KINDS: ClassVar[tuple[type[Event], ...]] = (StepDone, ResidualNorm)

    def __init__(self) -> None:
        self._sums: dict[int, _StepSums] = {}
        self._changed: set[int] = set()  # numbers of steps whose points are old
        self._points: dict[int, StepPoint] = {}
        self._norms: defaultdict[str, list[NormSeen]] = defaultdict(list)
        self._before: defaultdict[str, int] = defaultdict(int)
        self._last: dict[str, int] = {}

    def add(self, stamped: Stamped) -> None:
        """Add an event.

        If a source restarts at step 1, its numbers continue from the last step before the restart.
        """
        _, source, event = stamped
        if isinstance(event, StepDone):
            last = self._last.get(source, 0)
            if event.step <= last:
                self._before[source] += last
            self._last[source] = event.step
            number = self._before[source] + event.step
            sums = self._sums.get(number)
            if sums is None:
                sums = self._sums[number] = _StepSums()
            sums.add(event)
            self._changed.add(number)
        elif isinstance(event, ResidualNorm) and event.norm is not None:
            self._norms[source].append(NormSeen(self._before[source] + event.step, event.norm))

    @property
    def num_workers(self) -> int:
        """Number of workers that reported at least one step."""
        return len(self._last)

    def steps(self) -> list[StepPoint]:
        """Return all steps, in order; those that no event has changed are not computed again."""
        for number in sorted(self._changed):
            self._points[number] = self._sums[number].point(number)
        self._changed.clear()
        return [self._points[number] for number in sorted(self._points)]

    def norms(self) -> dict[str, list[NormSeen]]:
        """Return residual norms by worker, without workers whose norms are all zero."""
        return {
            source: seen
            for source, seen in self._norms.items()
            if any(entry.norm for entry in seen)
        }


class _StepSums:
    """Sums over the workers of one step."""

    __slots__ = (
        "compute_s",
        "decode_s",
        "encode_s",
        "is_first",
        "num_workers",
        "sent_bytes",
        "wait_s",
    )

    def __init__(self) -> None:
        self.num_workers = self.sent_bytes = 0
        self.compute_s = self.encode_s = self.wait_s = self.decode_s = 0.0
        self.is_first = False

    def add(self, done: StepDone) -> None:
        self.num_workers += 1
        self.sent_bytes += done.sent_bytes
        self.compute_s += done.compute_s
        self.encode_s += done.encode_s
        self.wait_s += done.wait_s
        self.decode_s += done.decode_s
        self.is_first = self.is_first or done.step == 1

    def point(self, number: int) -> StepPoint:
        seconds = {kind: getattr(self, field) / self.num_workers for kind, field in KINDS.items()}
        return StepPoint(number, seconds, self.sent_bytes, self.is_first)


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
