"""The profile file: figures of trials, with what they were measured on and when.

    {"machine": {...}, "trials": {"graph/build": {"figures": {...}, "versions": {...}, ...}}}

The file can be removed at any time. One that is damaged, or of another machine, counts as empty.
"""

import contextlib
import importlib.metadata
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from talka.events import Stream, progress_in_terminal
from talka.files import cache_folder, write_whole
from talka.files.writing import lock_now, wait_for_lock
from talka.machine import num_cores, processor_name
from talka.profile.trial import Trial

Figures = Mapping[str, float]
"""Figures of one trial by name, such as `{"start_s": 1.2}`."""

FAR_OFF: Final = 1.3
"""Ratio of a measured to a predicted time, or its inverse, beyond which a prediction is wrong."""
MIN_AGE_S: Final = 3600.0
"""Seconds after a trial before wrong predictions can repeat it."""
_MAX_MISSES: Final = 3
_MAX_BYTES: Final = 1 << 20
_MAX_FIGURE: Final = 1e18


@dataclass(frozen=True, slots=True)
class Kept:
    """The figures of one trial, and whether predictions with them were right."""

    figures: dict[str, float]
    versions: dict[str, str]
    """Versions of the packages that the figures depend on."""
    measured_at_s: float
    """Seconds since 1970 at which the trial ended."""
    num_misses: int = 0
    """Wrong predictions in a row that used these figures."""
    max_misses: int = _MAX_MISSES
    """Wrong predictions in a row after which the trial is repeated. Doubled if that confirms the
    figures, because the error must then be in the model."""

    def is_doubted(self, now_s: float) -> bool:
        """Whether predictions were wrong so often that the trial should be repeated.

        Not within the first hour: while the machine is busy, measuring again does not help.
        """
        return self.num_misses >= self.max_misses and now_s - self.measured_at_s >= MIN_AGE_S


class Profile:
    """Figures of trials on this machine, in a file that processes share.

    Parameters
    ----------
    path
        The file; by default `profile.json` in the user's cache folder.
    now
        Clock, in seconds since 1970.
    """

    def __init__(self, path: Path | None = None, *, now: Callable[[], float] = time.time) -> None:
        self.path = cache_folder("profile") / "profile.json" if path is None else path
        self._now = now
        self._trials = self._read()
        self.measuring_s = 0.0
        """Seconds that this process has spent on trials; later processes do not."""

    def figures(self, trial: Trial, events: Stream | None = None) -> Figures:
        """Return the figures of a trial. Run it first, as a phase of `events`, if none fit.

        Without `events`, progress is shown in the terminal.
        """
        kept = self._fitting(trial)
        if kept is None:
            kept = self._run(trial, events)
        return kept.figures

    def kept(self, trial: Trial) -> Figures | None:
        """Return the figures of a trial if they are known; None otherwise, without running it."""
        fitting = self._fitting(trial)
        return None if fitting is None else fitting.figures

    def measure(self, trial: Trial, events: Stream | None = None) -> Figures:
        """Run a trial although its figures may be known, and keep the new ones."""
        return self._run(trial, events, again=True).figures

    def known(self) -> Mapping[str, Kept]:
        """Return all kept figures by the name of their trial."""
        return self._trials

    def judge(self, names: Mapping[str, float]) -> None:
        """Compare predictions with their measurements, by the trials that the predictions used.

        `names` has the measured over the predicted time by name of a trial. A trial that was
        wrong several times in a row is repeated when the next plan needs it.
        """
        judged = {name: self._trials[name] for name in names if name in self._trials}
        changed = {}
        for name, kept in judged.items():
            is_far_off = not 1 / FAR_OFF <= names[name] <= FAR_OFF
            changed[name] = replace(kept, num_misses=kept.num_misses + 1 if is_far_off else 0)
        if changed != judged:
            with self._lock(wait=False) as is_free:
                if is_free:  # otherwise a trial runs, and a job should not end later because of it
                    self._keep(changed)

    def _fitting(self, trial: Trial) -> Kept | None:
        kept = self._trials.get(trial.name)
        if kept is None or kept.is_doubted(self._now()):
            return None
        is_same = kept.versions == _versions(trial) and set(kept.figures) == set(trial.figures)
        return kept if is_same else None

    def _run(self, trial: Trial, events: Stream | None, *, again: bool = False) -> Kept:
        """Run a trial unless another process has done so in the meantime."""
        with self._counting_seconds(), self._lock():
            self._trials = self._read()
            kept = self._fitting(trial)
            if kept is not None and not again:
                return kept
            figures = _measured(trial, events)
            before = self._trials.get(trial.name)
            max_misses = _MAX_MISSES
            if (
                before is not None
                and before.is_doubted(self._now())
                and _agree(before.figures, figures)
            ):
                max_misses = 2 * before.max_misses
            kept = Kept(figures, _versions(trial), self._now(), max_misses=max_misses)
            self._keep({trial.name: kept})
            return kept

    def _keep(self, changed: Mapping[str, Kept]) -> None:
        """Add to what is in the file now. A full disk only means that trials run again."""
        self._trials = {**self._read(), **changed}
        trials = {name: asdict(kept) for name, kept in self._trials.items()}
        with contextlib.suppress(OSError):
            write_whole(self.path, json.dumps({"machine": _machine(), "trials": trials}, indent=1))

    def _read(self) -> dict[str, Kept]:
        try:
            with self.path.open("rb") as file:
                content = json.loads(file.read(_MAX_BYTES))
            if content["machine"] != _machine():
                return {}
            return {str(name): _checked(kept) for name, kept in content["trials"].items()}
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return {}

    @contextlib.contextmanager
    def _counting_seconds(self) -> Iterator[None]:
        start_s = time.perf_counter()
        try:
            yield
        finally:
            self.measuring_s += time.perf_counter() - start_s

    @contextlib.contextmanager
    def _lock(self, *, wait: bool = True) -> Iterator[bool]:
        """Hold a lock, so that two processes do not disturb each other's trials.

        Yields False if another process holds it; with `wait`, the block starts when it is free.
        """
        try:
            handle = os.open(self.path.with_suffix(".lock"), os.O_WRONLY | os.O_CREAT, 0o600)
        except OSError:
            yield True  # a folder that cannot be written to
            return
        try:
            if wait:
                wait_for_lock(handle)
            yield wait or lock_now(handle)
        finally:
            os.close(handle)


@cache
def this_machine() -> Profile:
    """Return the profile of this machine, as every prediction uses it."""
    return Profile()


def _measured(trial: Trial, events: Stream | None) -> dict[str, float]:
    if events is None:
        events = Stream()
        with progress_in_terminal(events):
            return _measured(trial, events)
    with events.phase(f"profile/{trial.name}"):
        figures = trial.measure()
    return {name: float(value) for name, value in figures.items()}


def _agree(before: Figures, after: Figures) -> bool:
    return before.keys() == after.keys() and all(
        1 / FAR_OFF <= after[name] / before[name] <= FAR_OFF for name in before if before[name]
    )


def _machine() -> dict[str, Any]:
    return {"processor": processor_name(), "num_cores": num_cores()}


def _versions(trial: Trial) -> dict[str, str]:
    return {package: _version(package) for package in ("talka", *trial.packages)}


@cache
def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _checked(fields: dict[str, Any]) -> Kept:
    """Return an entry of the file. Raise ValueError if a value cannot be computed with."""
    kept = Kept(**fields)
    numbers = (*kept.figures.values(), kept.measured_at_s, kept.num_misses, kept.max_misses)
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise ValueError(number)
        if not (math.isfinite(number) and 0 <= number <= _MAX_FIGURE):
            raise ValueError(number)
    return kept
