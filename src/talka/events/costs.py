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


class Costs:
    """Sums of costs by cost id; the last prediction of an id counts.

    Repeated measurements of a writer are summed. Ranks work at the same time: their bytes are
    summed, and the seconds are those of the slowest rank.
    """

    KINDS: ClassVar[tuple[type[Event], ...]] = (Predicted, Measured)

    def __init__(self) -> None:
        self._predicted: dict[str, Predicted] = {}
        self._measured: dict[str, dict[str, Measured]] = {}
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
            before = by_source.get(source)
            by_source[source] = event if before is None else _sequential(before, event)
            if before is None and event.cost_id not in self._predicted:
                first_s = self._first_s.get(event.cost_id, time_s)
                self._first_s[event.cost_id] = min(first_s, time_s)

    def comparisons(self) -> list[Comparison]:
        """Return all costs: those that were predicted, then the others, each by its first event."""
        ids = sorted(self._first_s, key=lambda id: (id not in self._predicted, self._first_s[id]))
        return [Comparison(id, self._predicted.get(id), self._total(id)) for id in ids]

    def _total(self, cost_id: str) -> Measured | None:
        by_source = self._measured.get(cost_id)
        return None if by_source is None else _concurrent(cost_id, by_source.values())


def compare(events: Iterable[Event]) -> list[Comparison]:
    """Return predicted and measured costs by cost id, for events of one writer."""
    costs = Costs()
    for event in events:
        costs.add(Stamped(0.0, "driver", event))
    return costs.comparisons()


def _sequential(first: Measured, second: Measured) -> Measured:
    """Return the cost of two measurements of one writer."""
    return Measured(
        first.cost_id,
        _sum([first.sent_bytes, second.sent_bytes]),
        _sum([first.seconds, second.seconds]),
    )


def _concurrent(cost_id: str, measured: Iterable[Measured]) -> Measured:
    """Return the cost of a part that several writers measured at the same time."""
    measured = list(measured)
    seconds = [cost.seconds for cost in measured if cost.seconds is not None]
    sent_bytes = _sum([cost.sent_bytes for cost in measured])
    return Measured(cost_id, sent_bytes, max(seconds, default=None))


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
