"""The loop of supersteps: submit tasks, collect reports, decide, keep what recovery needs.

    begin -> [reports -> ended? -> checkpoint due? -> advance] ... -> values

After a loss the engine's lineage replays the lost partitions from the last checkpoint, with the
mails of the other partitions, which are kept until the next checkpoint. No other partition is
rolled back (confined recovery).
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from talka.engine import Engine, Ref
from talka.errors import NeverHaltsError, PayloadError, SavedStateError
from talka.events import Measured, Stream
from talka.graph.events import SuperstepDone
from talka.graph.supersteps.checkpoint import Checkpoints, SavedSuperstep
from talka.graph.supersteps.halting import HaltingRules
from talka.graph.supersteps.protocol import (
    Context,
    PartitionOutputs,
    Report,
    Stepper,
    as_saved,
)


class Ended(NamedTuple):
    """The results of a program that has ended."""

    superstep: int
    """Number of the last superstep."""
    states: list[list[NDArray[Any]]]
    """Arrays of each partition."""
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
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._engine, self._stepper, self._rules = engine, stepper, rules
        self._num_vertices, self._num_threads = num_vertices, num_threads
        self._events, self._checkpoints, self._now = events, checkpoints, now
        self._kept: list[Ref] = []
        """Mails since the last checkpoint, for the replay of lost partitions."""
        self._started_s = 0.0
        self._history: list[SuperstepDone] = []

    def run(self) -> Ended:
        """Run supersteps until the program ends, and return its values."""
        num_supersteps = self._rules.num_supersteps
        with self._events.phase(
            "graph/supersteps", total=num_supersteps, unit="supersteps"
        ) as phase:
            superstep, outputs = self._start()
            phase.done = superstep
            while True:
                reports = self._reports(superstep, outputs)
                phase.advance(0 if superstep == 0 else 1)
                totals = self._rules.totals(superstep, reports)
                if self._rules.has_ended(superstep, reports, totals):
                    break
                if self._rules.is_too_long(superstep):
                    raise NeverHaltsError(superstep, sum(r.num_active for r in reports))
                self._save_if_due(superstep, outputs)
                before, outputs = outputs, self._advance(superstep + 1, outputs, totals)
                superstep += 1
                self._release(before)
            states = self._engine.fetch([ref for output in outputs for ref in output.state])
            phase.sent_bytes = sum(done.sent_bytes for done in self._history)
        self._engine.release([ref for output in outputs for ref in output.refs])
        self._engine.release(self._kept)
        size = len(states) // len(outputs)
        by_partition = [list(states[i : i + size]) for i in range(0, len(states), size)]
        return Ended(superstep, by_partition, totals, self._history)

    def _start(self) -> tuple[int, list[PartitionOutputs]]:
        self._started_s = self._now()
        indices = range(self._stepper.num_partitions)
        if (saved := self._checkpoints.last()) is not None:
            try:
                self._stepper.take_graph(saved.graph)
                self._stepper.check(saved.outputs)
            except PayloadError as error:
                raise SavedStateError(saved.path, error.problem) from error
            outputs = [self._stepper.restored(self._engine, i, saved.outputs[i]) for i in indices]
            return saved.superstep, outputs
        context = self._context(0, {})
        outputs = [self._stepper.begin(self._engine, i, context) for i in indices]
        return 0, self._stepper.complete(self._engine, context, outputs)

    def _advance(
        self, superstep: int, before: Sequence[PartitionOutputs], totals: dict[str, float]
    ) -> list[PartitionOutputs]:
        self._started_s = self._now()
        context = self._context(superstep, totals)
        outputs = [
            self._stepper.advance(self._engine, index, context, before)
            for index in range(self._stepper.num_partitions)
        ]
        return self._stepper.complete(self._engine, context, outputs)

    def _context(self, superstep: int, totals: dict[str, float]) -> Context:
        is_last = self._rules.is_last(superstep)
        return Context(superstep, self._num_vertices, is_last, totals, self._num_threads)

    def _reports(self, superstep: int, outputs: Sequence[PartitionOutputs]) -> list[Report]:
        """Wait for all partitions, and return one report each."""
        plain = self._engine.fetch([ref for output in outputs for ref in output.reports])
        size = len(plain) // len(outputs)
        reports = [Report.merged(plain[i : i + size]) for i in range(0, len(plain), size)]
        self._record(superstep, reports, self._now() - self._started_s)
        return reports

    def _record(self, superstep: int, reports: Sequence[Report], seconds: float) -> None:
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
        self._events.emit(Measured(f"graph/superstep/{superstep}", done.sent_bytes, seconds))
        self._checkpoints.passed(done)

    def _save_if_due(self, superstep: int, outputs: Sequence[PartitionOutputs]) -> None:
        """Save the outputs of the last superstep, and cut the lineage there."""
        if not self._checkpoints.is_due():
            return
        with self._checkpoints.timed():
            saved = [
                [self._engine.fetch(list(task)) for task in output.tasks] for output in outputs
            ]
            self._checkpoints.save(SavedSuperstep(superstep, saved, self._stepper.changed_graph()))
            is_cut = [
                self._engine.replace(task[0], as_saved, *values)
                for output, saved_tasks in zip(outputs, saved, strict=True)
                for task, values in zip(output.tasks, saved_tasks, strict=True)
            ]
        if all(is_cut):
            self._engine.release(self._kept)
            self._kept = []

    def _release(self, outputs: Sequence[PartitionOutputs]) -> None:
        """Release reports and states; keep mails for the replay of lost partitions."""
        for output in outputs:
            used = {ref.id for ref in (*output.reports, *output.state)}
            others = [ref for ref in output.refs if ref.id not in used]
            self._engine.release([ref for ref in output.refs if ref.id in used])
            if len(outputs) > 1:
                self._kept += others
            else:
                self._engine.release(others)
