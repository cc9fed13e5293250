"""Supersteps as series of numbers, thinned to as many bars as a plot can show."""

from collections.abc import Sequence
from statistics import fmean
from typing import ClassVar, NamedTuple

from talka.engine.events import TaskAgain
from talka.events import Event, Stamped
from talka.graph.events import SuperstepDone
from talka.report.plotting.thinning import MAX_POINTS, thinned


class Superstep(NamedTuple):
    """One superstep over all partitions, or, after thinning, the mean of several."""

    number: float
    num_active: float
    num_messages: float
    sent_bytes: float
    edges: float
    seconds: float
    way: str
    """Direction of the messages along edges: "push", "pull", "both", or "other"."""
    num_again: int
    """Number of tasks that were run again during the superstep."""


class SuperstepSeries:
    """All supersteps in order. A second program in the same run continues the numbering."""

    KINDS: ClassVar[tuple[type[Event], ...]] = (SuperstepDone, TaskAgain)

    def __init__(self) -> None:
        self.supersteps: list[Superstep] = []
        self._before, self._last, self._num_again = 0, -1, 0

    def add(self, stamped: Stamped) -> None:
        """Add an event."""
        event = stamped.event
        if isinstance(event, TaskAgain):
            self._num_again += 1
        elif isinstance(event, SuperstepDone):
            if event.superstep <= self._last:
                self._before += self._last + 1
            self._last = event.superstep
            number = self._before + event.superstep
            self.supersteps.append(_superstep(event, number, self._num_again))
            self._num_again = 0


def thinned_supersteps(
    supersteps: Sequence[Superstep], *, max_bars: int = MAX_POINTS
) -> list[Superstep]:
    """Replace neighbours by their mean if there are too many; the way of mixed ones is "both"."""
    return thinned(supersteps, _mean, max_points=max_bars)


def _superstep(event: SuperstepDone, number: int, num_again: int) -> Superstep:
    ways = {(True, False): "push", (False, True): "pull", (True, True): "both"}
    return Superstep(
        number,
        event.num_active,
        event.num_messages,
        event.sent_bytes,
        event.edges,
        event.seconds,
        ways.get((event.pushed > 0, event.pulled > 0), "other"),
        num_again,
    )


def _mean(group: Sequence[Superstep]) -> Superstep:
    ways = {superstep.way for superstep in group} - {"other"}
    return Superstep(
        number=fmean(superstep.number for superstep in group),
        num_active=fmean(superstep.num_active for superstep in group),
        num_messages=fmean(superstep.num_messages for superstep in group),
        sent_bytes=fmean(superstep.sent_bytes for superstep in group),
        edges=fmean(superstep.edges for superstep in group),
        seconds=fmean(superstep.seconds for superstep in group),
        way=ways.pop() if len(ways) == 1 else "both" if ways else "other",
        num_again=sum(superstep.num_again for superstep in group),
    )
