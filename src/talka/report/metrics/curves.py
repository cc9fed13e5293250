"""Values of metrics as curves, one per metric and rank.

event of a rank -> point (step, or epoch, or number of the value) -> at most MAX_POINTS points
"""

from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple

from talka.events import Event, Stamped
from talka.report.plotting.thinning import thinned
from talka.train.events import MetricsLogged

_MAX_KEPT: Final = 20_000
"""Points of a curve that are kept; beyond these every other one is dropped."""


class MetricPoint(NamedTuple):
    """A value of a metric."""

    place: float
    """Step, epoch or number of the value."""
    value: float | None
    """None if it is not finite."""


class Curve:
    """All values of a metric that one rank has logged."""

    def __init__(self) -> None:
        self.points: list[MetricPoint] = []
        self.last: MetricsLogged | None = None
        self.num_values = 0
        self._before = 0.0
        self._given = 0.0

    def add(self, event: MetricsLogged) -> None:
        """Add a value. If steps start again, they continue from the last one before."""
        self.last = event
        self.num_values += max(1, event.num_values)
        given = event.step if event.step is not None else event.epoch
        if given is None:
            given = self.num_values
        if given < self._given:
            self._before += self._given
        self._given = float(given)
        self.points.append(MetricPoint(self._before + self._given, event.value))
        if len(self.points) > _MAX_KEPT:
            del self.points[:-1:2]


class MetricCurves:
    """Curves by metric, then by rank."""

    KINDS: ClassVar[tuple[type[Event], ...]] = (MetricsLogged,)

    def __init__(self) -> None:
        self.curves: dict[str, dict[str, Curve]] = {}

    def add(self, stamped: Stamped) -> None:
        """Add an event."""
        event = stamped.event
        assert isinstance(event, MetricsLogged)
        by_rank = self.curves.setdefault(event.name, {})
        by_rank.setdefault(stamped.source, Curve()).add(event)


def axis_of(curves: Sequence[Curve]) -> str:
    """Return what the places of these curves are: `step`, `epoch` or `value`."""
    events = [curve.last for curve in curves if curve.last is not None]
    if all(event.step is not None for event in events):
        return "step"
    return "epoch" if all(event.epoch is not None for event in events) else "value"


def thinned_points(curve: Curve) -> list[MetricPoint]:
    """Keep the last point of each group of neighbours if there are too many to plot."""
    return thinned(curve.points, lambda group: group[-1])
