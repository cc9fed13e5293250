"""When a program ends: plain code, told what every partition reported."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from talka.graph.reports import Report

_COMBINES: dict[str, Callable[[list[float]], float]] = {
    "sum": math.fsum,
    "min": lambda values: min(values, default=math.inf),
    "max": lambda values: max(values, default=-math.inf),
}


class Rules(NamedTuple):
    """What ends a program."""

    num_supersteps: int | None
    """So many supersteps after the first (which only speaks)."""
    max_supersteps: int
    until: Callable[[Mapping[str, float]], bool] | None
    aggregates: Mapping[str, str]
    """How each is combined over partitions."""

    def totals(self, reports: Sequence[Report]) -> dict[str, float]:
        """Aggregates over all partitions: sums are exact, so their order does not matter."""
        return {
            name: _COMBINES[combine]([x for report in reports for x in report.totals[name]])
            for name, combine in self.aggregates.items()
        }

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
        return superstep >= self.max_supersteps
