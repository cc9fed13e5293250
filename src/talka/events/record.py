"""What is known of a run: its events, and sums over them that grow while the run continues."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Protocol, TypeVar

from talka.errors import OptionError
from talka.events.base import RunEnded
from talka.events.costs import Comparison, Costs
from talka.events.parsing import Stamped
from talka.events.registry import Event, pillar_of

DRIVER: Final = "driver"
RunStatus = Literal["done", "failed", "interrupted", "running", "killed", "ended"]


class Fold(Protocol):
    """Sums over the events of some kinds, such as the totals of a run.

    Events of one writer arrive in the order in which they were written. Those of different writers
    arrive in no order that a sum may depend on: an event can come after younger ones of others.
    """

    KINDS: ClassVar[tuple[type[Event], ...]]
    """Kinds of events that are added."""

    def add(self, stamped: Stamped) -> None:
        """Add an event of one of these kinds."""
        ...


_Fold = TypeVar("_Fold", bound=Fold)


class RunRecord:
    """Contents of a run directory, as far as they have been read.

    `update` adds events; `fold` returns sums over all events so far, at the cost of the new ones.

    Parameters
    ----------
    folds
        Sums to keep from the start. With `keep_events=False` there are no others, and the memory of
        a record does not grow with the number of events, except for what the sums keep.
    """

    def __init__(
        self,
        dir: Path,
        config: Mapping[str, Any] | None = None,
        events: Iterable[Stamped] = (),
        result: dict[str, Any] | None = None,
        *,
        folds: Iterable[type[Fold]] = (),
        keep_events: bool = True,
    ) -> None:
        self.dir = dir
        self.config = dict(config or {})
        """Content of `config.json`; empty if it is missing or damaged."""
        self.events: list[Stamped] = []
        """Events of all writers, in the order of `update`; empty if they are not kept."""
        self.result = result
        """Content of `result.json`; None if the run did not finish."""
        self.num_by_kind: Counter[type[Event]] = Counter()
        """Number of events of each kind; those of kinds that are not registered are `Unknown`."""
        self.num_unreadable_lines = 0
        """Number of lines that are not an event: damaged, or cut off at the end of a file."""
        self.num_damaged_lines = 0
        """Number of unreadable lines that were not cut off at the end of a file, as those of a killed
        run are."""
        self.has_writer = False
        """True if a live process was still writing events."""
        self.first_s: float | None = None
        """Earliest time of an event, in seconds since 1970; None without events."""
        self.last_s: float | None = None
        """Latest time of an event, in seconds since 1970; None without events."""
        self.ended: Stamped | None = None
        """The event RunEnded; None if the driver has not written it."""
        self._has_driver = False
        self._keep_events = keep_events
        self._folds: dict[type[Fold], Fold] = {}
        self._adders: dict[type[Event], list[Callable[[Stamped], None]]] = {}
        for kind in folds:
            self._open(kind)
        self.update(events)

    def update(self, events: Iterable[Stamped]) -> None:
        """Add events, those of each writer in the order in which they were written."""
        events = list(events)
        if not events:
            return
        times = [stamped.time_s for stamped in events]
        self.first_s = min(times + ([] if self.first_s is None else [self.first_s]))
        self.last_s = max(times + ([] if self.last_s is None else [self.last_s]))
        self._has_driver = self._has_driver or any(source == DRIVER for _, source, _ in events)
        if self._keep_events:
            self.events += events
        num_by_kind, adders = self.num_by_kind, self._adders
        for stamped in events:
            kind = type(stamped.event)
            num_by_kind[kind] += 1
            for add in adders.get(kind, ()):
                add(stamped)
            if kind is RunEnded:
                self.ended = stamped

    def fold(self, kind: type[_Fold]) -> _Fold:
        """Return the sums of a kind over all events so far.

        Raises OptionError if they were not kept from the start and the events are gone.
        """
        known = self._folds.get(kind)
        if known is None:
            if self.num_by_kind and not self._keep_events:
                advice = "Name it in `folds`, or keep the events."
                raise OptionError(f"fold {kind.__name__}", "was not kept from the start", advice)
            known = self._open(kind)
            for stamped in self.events:
                if type(stamped.event) in kind.KINDS:
                    known.add(stamped)
        assert isinstance(known, kind)
        return known

    @property
    def pillars(self) -> set[str]:
        """Parts of talka whose events the run has, such as `train`."""
        return {pillar_of(kind) for kind in self.num_by_kind} - {""}

    @property
    def status(self) -> RunStatus:
        """Status of the run: how it ended, or `running`.

        `ended` is for runs without a driver, which record no status.
        """
        if self.ended is not None and isinstance(self.ended.event, RunEnded):
            return self.ended.event.status
        if self.has_writer:
            return "running"
        return "killed" if self._has_driver or self.config else "ended"

    def comparisons(self) -> list[Comparison]:
        """Return predicted and measured costs by cost id (see `Costs`)."""
        return self.fold(Costs).comparisons()

    def _open(self, kind: type[Fold]) -> Fold:
        fold = self._folds[kind] = kind()
        for event in kind.KINDS:
            self._adders.setdefault(event, []).append(fold.add)
        return fold
