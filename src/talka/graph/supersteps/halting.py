"""When a program ends: plain code, told what every partition reported."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from talka.graph.supersteps.protocol import Report

Combined = str | Callable[[Any, Any], Any]


class HaltingRules(NamedTuple):
    """What ends a program."""

    num_supersteps: int | None
    """So many supersteps after the first (which only speaks)."""
    max_supersteps: int | None
    """More than these are an error; None: there is no limit."""
    until: Callable[[Mapping[str, Any]], bool] | None
    aggregates: Mapping[str, Combined]
    """How each is combined over partitions."""
    master: Callable[[int, Mapping[str, Any]], Mapping[str, Any]] | None = None
    """Makes more of them, once for all partitions."""

    def totals(self, superstep: int, reports: Sequence[Report]) -> dict[str, Any]:
        """Aggregates over all partitions."""
        totals = {
            name: _total(combine, [x for report in reports for x in report.totals[name]])
            for name, combine in self.aggregates.items()
        }
        return totals if self.master is None else {**totals, **self.master(superstep, totals)}

    def is_last(self, superstep: int) -> bool:
        """Whether nobody will hear what is said in it."""
        return self.num_supersteps is not None and superstep >= self.num_supersteps

    def has_ended(
        self, superstep: int, reports: Sequence[Report], totals: Mapping[str, float]
    ) -> bool:
        """After this superstep."""
        if self.is_last(superstep) or all(report.is_quiet for report in reports):
            return True
        return superstep > 0 and self.until is not None and self.until(totals)

    def is_too_long(self, superstep: int) -> bool:
        return self.max_supersteps is not None and superstep >= self.max_supersteps


def _total(combine: Combined, values: list[Any]) -> Any:
    """Sums of floats are exact, so that their order does not matter; nothing at all is None."""
    if callable(combine):
        return functools.reduce(combine, values) if values else None
    if combine == "sum":
        return math.fsum(values) if any(isinstance(x, float) for x in values) else sum(values)
    if combine == "any":
        return any(values)
    smallest = combine == "min"
    return (min if smallest else max)(values, default=math.inf if smallest else -math.inf)
