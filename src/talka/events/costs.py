"""Predicted and measured costs by cost id, summed while events arrive."""

from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from talka.events.base import Measured, Predicted
from talka.events.parsing import Stamped
from talka.events.registry import Event


class Comparison(NamedTuple):
    """Predicted and measured cost of one part of a job; None if one of them is missing."""

    cost_id: str
    predicted: Predicted | None
    measured: Measured | None


class _Sums:
    """Sums over the measurements of one part by one writer; None if nothing was measured."""

    __slots__ = ("seconds", "sent_bytes")

    def __init__(self, first: Measured) -> None:
        self.sent_bytes, self.seconds = first.sent_bytes, first.seconds

    def add(self, measured: Measured) -> None:
        if measured.sent_bytes is not None:
            self.sent_bytes = (self.sent_bytes or 0) + measured.sent_bytes
        if measured.seconds is not None:
            self.seconds = (self.seconds or 0) + measured.seconds


class Costs:
    """Sums of costs by cost id; the last prediction of an id counts.

    Repeated measurements of a writer are summed. Ranks work at the same time: their bytes are
    summed, and the seconds are those of the slowest rank.
    """

    KINDS: ClassVar[tuple[type[Event], ...]] = (Predicted, Measured)

    def __init__(self) -> None:
        self._predicted: dict[str, Predicted] = {}
        self._measured: dict[str, dict[str, _Sums]] = {}
        self._first_s: dict[str, float] = {}

    def add(self, stamped: Stamped) -> None:
        """Add a prediction or a measurement."""
        time_s, source, event = stamped
        if isinstance(event, Predicted):
            if event.cost_id not in self._predicted:
                self._first_s[event.cost_id] = time_s
            self._predicted[event.cost_id] = event
        elif isinstance(event, Measured):
            by_source = self._measured.setdefault(event.cost_id, {})
            sums = by_source.get(source)
            if sums is not None:
                sums.add(event)
                return
            by_source[source] = _Sums(event)
            if event.cost_id not in self._predicted:
                first_s = self._first_s.get(event.cost_id, time_s)
                self._first_s[event.cost_id] = min(first_s, time_s)

    def comparisons(self) -> list[Comparison]:
        """Return all costs: those that were predicted, then the others, each by its first event."""
        ids = sorted(self._first_s, key=lambda id: (id not in self._predicted, self._first_s[id]))
        return [Comparison(id, self._predicted.get(id), self._total(id)) for id in ids]

    def _total(self, cost_id: str) -> Measured | None:
        """Return the cost of a part that several writers may have measured at the same time."""
        by_source = self._measured.get(cost_id)
        if by_source is None:
            return None
        sent_bytes = [sums.sent_bytes for sums in by_source.values() if sums.sent_bytes is not None]
        seconds = [sums.seconds for sums in by_source.values() if sums.seconds is not None]
        return Measured(
            cost_id, sum(sent_bytes) if sent_bytes else None, max(seconds, default=None)
        )


def compare(events: Iterable[Event]) -> list[Comparison]:
    """Return predicted and measured costs by cost id, for events of one writer."""
    costs = Costs()
    for event in events:
        costs.add(Stamped(0.0, "driver", event))
    return costs.comparisons()
