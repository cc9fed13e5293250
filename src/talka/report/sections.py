"""The table of sections: which ones a page has, in their order."""

from collections.abc import Sequence
from typing import Final

from talka.events import Fold
from talka.report.base import PageSection
from talka.report.choices import CHOICES
from talka.report.collectives import COLLECTIVES
from talka.report.comparison import COMPARISON
from talka.report.lab_hosts import LAB_HOSTS
from talka.report.metrics.section import METRICS
from talka.report.rounds.section import ROUNDS
from talka.report.steps import STEPS
from talka.report.summary import SUMMARY
from talka.report.supersteps import SUPERSTEPS
from talka.report.timeline import TIMELINE
from talka.report.troubles import TROUBLES
from talka.report.unknown_kinds import UNKNOWN_KINDS
from talka.report.workers import WORKERS

SECTIONS: Final[tuple[PageSection, ...]] = (
    SUMMARY,  # first: its title is the page's
    TROUBLES,  # the first question about a failed run is why it failed
    METRICS,  # what the script itself reports: loss, accuracy
    COMPARISON,
    CHOICES,
    LAB_HOSTS,
    COLLECTIVES,
    STEPS,
    ROUNDS,
    SUPERSTEPS,
    TIMELINE,
    WORKERS,  # after the timeline, which shows where the idle time was
    UNKNOWN_KINDS,
)


def folds_of(sections: Sequence[PageSection] = SECTIONS) -> list[type[Fold]]:
    """Return the sums that sections read, for `follow(run_dir, folds=..., keep_events=False)`."""
    return list(dict.fromkeys(fold for section in sections for fold in section.folds))
