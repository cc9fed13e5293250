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
from talka.graph.supersteps.checkpoint import Checkpoints, SavedSuperstep
from talka.graph.supersteps.halting import HaltingRules
from talka.graph.supersteps.protocol import Context, PartitionOutputs, Report, Stepper, as_saved


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
        rules: HaltingRules,
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
            superstep, outputs_of_all = self._start()
            phase.done = superstep
            while True:
                reports = self._reports(superstep, outputs_of_all)
                phase.advance(0 if superstep == 0 else 1)
                totals = self._rules.totals(superstep, reports)
                if self._rules.has_ended(superstep, reports, totals):
                    break
                if self._rules.is_too_long(superstep):
                    raise NeverHaltsError(superstep, sum(r.num_active for r in reports))
                self._save_if_due(superstep, outputs_of_all)
                before, outputs_of_all = (
                    outputs_of_all,
                    self._advance(superstep + 1, outputs_of_all, totals),
                )
                superstep += 1
                self._forget(before)
            states = self._engine.fetch([ref for output in outputs_of_all for ref in output.state])
            phase.sent_bytes = sum(done.sent_bytes for done in self._history)
        self._engine.release([ref for output in outputs_of_all for ref in output.outputs])
        self._engine.release(self._kept)
        size = len(states) // len(outputs_of_all)
        by_part = [list(states[i : i + size]) for i in range(0, len(states), size)]
        return Ended(superstep, by_part, totals, self._history)

    def _start(self) -> tuple[int, list[PartitionOutputs]]:
        self._started_s = time.perf_counter()
        indices = range(self._stepper.num_partitions)
        if (saved := self._checkpoints.last()) is not None:
            try:
                self._stepper.take_graph(saved.graph)
                self._stepper.check(saved.outputs)
            except PayloadError as error:
                raise SavedStateError(saved.path, error.problem) from error
            outputs_of_all = [
                self._stepper.restored(self._engine, i, saved.outputs[i]) for i in indices
            ]
            return saved.superstep, outputs_of_all
        context = self._context(0, {})
        outputs_of_all = [self._stepper.begin(self._engine, i, context) for i in indices]
        return 0, self._stepper.complete(self._engine, context, outputs_of_all)

    def _advance(
        self, superstep: int, before: Sequence[PartitionOutputs], totals: dict[str, float]
    ) -> list[PartitionOutputs]:
        self._started_s = time.perf_counter()
        context = self._context(superstep, totals)
        outputs_of_all = [
            self._stepper.advance(self._engine, index, context, before)
            for index in range(self._stepper.num_partitions)
        ]
        return self._stepper.complete(self._engine, context, outputs_of_all)

    def _context(self, superstep: int, totals: dict[str, float]) -> Context:
        is_last = self._rules.is_last(superstep)
        return Context(superstep, self._num_vertices, is_last, totals, self._num_threads)

    def _reports(self, superstep: int, outputs_of_all: Sequence[PartitionOutputs]) -> list[Report]:
        plain = self._engine.fetch([ref for output in outputs_of_all for ref in output.reports])
        size = len(plain) // len(outputs_of_all)
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

    def _save_if_due(self, superstep: int, outputs_of_all: Sequence[PartitionOutputs]) -> None:
        """Write what the last superstep left, and cut the lineage there."""
        if not self._checkpoints.is_due():
            return
        with self._checkpoints.timed():
            tasks = [
                [self._engine.fetch(list(task)) for task in output.tasks]
                for output in outputs_of_all
            ]
            self._checkpoints.save(SavedSuperstep(superstep, tasks, self._stepper.changed_graph()))
            cut = [
                self._engine.replace(task[0], as_saved, *outputs)
                for output, saved in zip(outputs_of_all, tasks, strict=True)
                for task, outputs in zip(output.tasks, saved, strict=True)
            ]
        if all(cut):
            self._engine.release(self._kept)
            self._kept = []

    def _forget(self, outputs_of_all: Sequence[PartitionOutputs]) -> None:
        """Let go of states that were used; mails stay for whoever must be replayed."""
        for output in outputs_of_all:
            done = {ref.id for ref in (*output.reports, *output.state)}
            rest = [ref for ref in output.outputs if ref.id not in done]
            self._engine.release([ref for ref in output.outputs if ref.id in done])
            if len(outputs_of_all) > 1:
                self._kept += rest
            else:
                self._engine.release(rest)
