"""The type of a page section, and helpers that sections share."""

import re
from collections.abc import Callable
from typing import NamedTuple

from talka.events import Fold, RunRecord
from talka.events.fields import MAX_TIME_S

_MAX_DIGITS = 18  # Python refuses to read numbers of thousands of digits


class ReportSection(NamedTuple):
    """Heading and body of one section. `body` is HTML in which all text is escaped already."""

    title: str
    body: str


SectionMaker = Callable[[RunRecord], ReportSection | None]
"""Builds a section from a run, or returns None if the run has nothing to show there.

It reads sums over events (`RunRecord.fold`), so that a page of a run that continues can be made again
at little cost.
"""


class PageSection(NamedTuple):
    """An entry of the table of sections."""

    make: SectionMaker
    folds: tuple[type[Fold], ...] = ()
    """Sums over events that the section reads."""
    pillar: str = ""
    """Part of talka whose events the section shows, such as `train`: pages of runs without such
    events do not have it. Empty for sections of every run."""


class TimeSpan(NamedTuple):
    """Start and end of a period, in seconds since 1970."""

    start_s: float
    end_s: float

    @property
    def seconds(self) -> float:
        """Length of the period, at least 0."""
        return max(self.end_s - self.start_s, 0.0)


def span_of(record: RunRecord) -> TimeSpan:
    """Return the period of a run. A run that has not ended counts up to its last event."""
    started = record.config.get("started_s")
    start_s = record.first_s or 0.0
    if isinstance(started, int | float) and 0 <= started <= MAX_TIME_S:
        start_s = float(started)
    if record.ended is not None:
        return TimeSpan(start_s, record.ended.time_s)
    return TimeSpan(start_s, start_s if record.last_s is None else record.last_s)


def natural_order(name: str) -> list[tuple[int, str]]:
    """Return a sort key that puts worker-10 after worker-9.

    >>> sorted(["worker-10", "worker-9"], key=natural_order)
    ['worker-9', 'worker-10']
    """
    pieces = re.split(r"(\d+)", name)
    return [(int(piece[:_MAX_DIGITS]) if piece.isdecimal() else -1, piece) for piece in pieces]
