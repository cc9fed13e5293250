"""Rules for when a program ends. Pure functions of the reports of all partitions."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from talka.graph.supersteps.protocol import Report

Combined = str | Callable[[Any, Any], Any]


class HaltingRules(NamedTuple):
    """The conditions that end a program, and the aggregates they depend on."""

    num_supersteps: int | None
    """Number of supersteps after superstep 0, which only sends; None: no fixed number."""
    max_supersteps: int | None
    """Number of supersteps beyond which the program fails; None: no limit."""
    until: Callable[[Mapping[str, Any]], bool] | None
    """Condition on aggregates that ends the program."""
    aggregates: Mapping[str, Combined]
    """How each aggregate is combined over partitions."""
    master: Callable[[int, Mapping[str, Any]], Mapping[str, Any]] | None = None
    """Derives further aggregates, once for all partitions."""

    def totals(self, superstep: int, reports: Sequence[Report]) -> dict[str, Any]:
        """Return the aggregates over all partitions."""
        totals = {
            name: _total(combine, [x for report in reports for x in report.totals[name]])
            for name, combine in self.aggregates.items()
        }
        return totals if self.master is None else {**totals, **self.master(superstep, totals)}

    def is_last(self, superstep: int) -> bool:
        """Return whether the number of supersteps is fixed and this is the last one."""
        return self.num_supersteps is not None and superstep >= self.num_supersteps

    def has_ended(
        self, superstep: int, reports: Sequence[Report], totals: Mapping[str, float]
    ) -> bool:
        """Return whether the program ends after this superstep."""
        if self.is_last(superstep) or all(report.is_quiet for report in reports):
            return True
        return superstep > 0 and self.until is not None and self.until(totals)

    def is_too_long(self, superstep: int) -> bool:
        return self.max_supersteps is not None and superstep >= self.max_supersteps


def _total(combine: Combined, values: list[Any]) -> Any:
    """Combine values in any order: sums of floats are exact. A function of no values is None."""
    if callable(combine):
        return functools.reduce(combine, values) if values else None
    if combine == "sum":
        return math.fsum(values) if any(isinstance(x, float) for x in values) else sum(values)
    if combine == "any":
        return any(values)
    smallest = combine == "min"
    return (min if smallest else max)(values, default=math.inf if smallest else -math.inf)
