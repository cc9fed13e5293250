"""The loop of supersteps: submit, hear reports, decide, keep what a loss would need.

    begin -> [reports -> go on? -> checkpoint due? -> advance] ... -> values

After a loss the engine's lineage replays the lost partitions from the last checkpoint with the
mails of the others, which are kept until the next one: nobody else goes back (confined recovery).
"""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from talka.engine import Engine, Ref
from talka.errors import NeverHaltsError, PayloadError, SavedStateError
from talka.events import Measured, Stream, SuperstepDone
from talka.graph.supersteps.checkpoint import Checkpoints, Saved
from talka.graph.supersteps.halting import Rules
from talka.graph.supersteps.protocol import Context, Report, Stepper, Turn, as_saved


class Ended(NamedTuple):
    """What a program left behind."""

    superstep: int
    """The last one."""
    states: list[list[NDArray[Any]]]
    """Of each partition."""
    aggregates: dict[str, float]
    history: list[SuperstepDone]


class Supersteps:
    """Runs one program to its end."""

    def __init__(
        self,
        engine: Engine,
        stepper: Stepper,
        rules: Rules,
        *,
        num_vertices: int,
        num_threads: int,
        events: Stream,
        checkpoints: Checkpoints,
    ) -> None:
        self._engine, self._stepper, self._rules = engine, stepper, rules
        self._num_vertices, self._num_threads = num_vertices, num_threads
        self._events, self._checkpoints = events, checkpoints
        self._kept: list[Ref] = []
        """Mails since the last checkpoint."""
        self._started_s = 0.0
        self._history: list[SuperstepDone] = []

    def run(self) -> Ended:
        num_supersteps = self._rules.num_supersteps
        with self._events.phase(
            "graph/supersteps", total=num_supersteps, unit="supersteps"
        ) as phase:
            superstep, turns = self._start()
            phase.done = superstep
            while True:
                reports = self._reports(superstep, turns)
                phase.advance(0 if superstep == 0 else 1)
                totals = self._rules.totals(superstep, reports)
                if self._rules.has_ended(superstep, reports, totals):
                    break
                if self._rules.is_too_long(superstep):
                    raise NeverHaltsError(superstep, sum(r.num_active for r in reports))
                self._save_if_due(superstep, turns)
                before, turns = turns, self._advance(superstep + 1, turns, totals)
                superstep += 1
                self._forget(before)
            states = self._engine.fetch([ref for turn in turns for ref in turn.state])
            phase.sent_bytes = sum(done.sent_bytes for done in self._history)
        self._engine.release([ref for turn in turns for ref in turn.outputs])
        self._engine.release(self._kept)
        size = len(states) // len(turns)
        by_part = [list(states[i : i + size]) for i in range(0, len(states), size)]
        return Ended(superstep, by_part, totals, self._history)

    def _start(self) -> tuple[int, list[Turn]]:
        self._started_s = time.perf_counter()
        indices = range(self._stepper.num_partitions)
        if (saved := self._checkpoints.last()) is not None:
            try:
                self._stepper.take_graph(saved.graph)
                self._stepper.check(saved.outputs)
            except PayloadError as error:
                raise SavedStateError(saved.path, error.problem) from error
            turns = [self._stepper.restored(self._engine, i, saved.outputs[i]) for i in indices]
            return saved.superstep, turns
        context = self._context(0, {})
        turns = [self._stepper.begin(self._engine, i, context) for i in indices]
        return 0, self._stepper.complete(self._engine, context, turns)

    def _advance(
        self, superstep: int, before: Sequence[Turn], totals: dict[str, float]
    ) -> list[Turn]:
        self._started_s = time.perf_counter()
        context = self._context(superstep, totals)
        turns = [
            self._stepper.advance(self._engine, index, context, before)
            for index in range(self._stepper.num_partitions)
        ]
        return self._stepper.complete(self._engine, context, turns)

    def _context(self, superstep: int, totals: dict[str, float]) -> Context:
        is_last = self._rules.is_last(superstep)
        return Context(superstep, self._num_vertices, is_last, totals, self._num_threads)

    def _reports(self, superstep: int, turns: Sequence[Turn]) -> list[Report]:
        plain = self._engine.fetch([ref for turn in turns for ref in turn.reports])
        size = len(plain) // len(turns)
        reports = [Report.merged(plain[i : i + size]) for i in range(0, len(plain), size)]
        self._say(superstep, reports, time.perf_counter() - self._started_s)
        return reports

    def _say(self, superstep: int, reports: Sequence[Report], seconds: float) -> None:
        done = SuperstepDone(
            superstep=superstep,
            num_active=sum(report.num_active for report in reports),
            num_messages=sum(report.num_messages for report in reports),
            sent_bytes=sum(report.sent_bytes for report in reports),
            edges=sum(report.edges for report in reports),
            pushed=sum(report.way == "push" for report in reports),
            pulled=sum(report.way == "pull" for report in reports),
            seconds=seconds,
        )
        self._history.append(done)
        self._events.emit(done)
        self._events.emit(Measured(f"superstep/{superstep}", done.sent_bytes, seconds))
        self._checkpoints.passed(done)

    def _save_if_due(self, superstep: int, turns: Sequence[Turn]) -> None:
        """Write what the last superstep left, and cut the lineage there."""
        if not self._checkpoints.is_due():
            return
        with self._checkpoints.timed():
            tasks = [[self._engine.fetch(list(task)) for task in turn.tasks] for turn in turns]
            self._checkpoints.save(Saved(superstep, tasks, self._stepper.changed_graph()))
            cut = [
                self._engine.replace(task[0], as_saved, *outputs)
                for turn, saved in zip(turns, tasks, strict=True)
                for task, outputs in zip(turn.tasks, saved, strict=True)
            ]
        if all(cut):
            self._engine.release(self._kept)
            self._kept = []

    def _forget(self, turns: Sequence[Turn]) -> None:
        """Let go of states that were used; mails stay for whoever must be replayed."""
        for turn in turns:
            done = {ref.id for ref in (*turn.reports, *turn.state)}
            rest = [ref for ref in turn.outputs if ref.id not in done]
            self._engine.release([ref for ref in turn.outputs if ref.id in done])
            if len(turns) > 1:
                self._kept += rest
            else:
                self._engine.release(rest)
