"""Supersteps of an edge program as tasks on an engine.

Under an edge cut a superstep of a partition is one task: receive, update, send. Under a vertex cut
the edges of a vertex lie in several partitions, so there are two tasks: receive, update and spread
the new values to the partitions with edges; then gather these values and send.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from talka.engine import Engine, Ref
from talka.graph.partitions.partition import Partition
from talka.graph.partitions.placing import Placed
from talka.graph.programs.compiler import kernel_text
from talka.graph.programs.edge_program import EdgeProgram
from talka.graph.programs.template import identity_of
from talka.graph.supersteps.edge_plan import EdgePlan, State
from talka.graph.supersteps.edge_superstep import EdgeSuperstep
from talka.graph.supersteps.protocol import Context, PartitionOutputs, as_saved
from talka.graph.supersteps.restoring import (
    check_array,
    check_below,
    check_count,
    check_edge_mail,
    check_report,
)

_ALL_SEND = np.zeros(0, np.uint32)  # stored instead of a frontier if all vertices send


class EdgeStepper:
    """Submits supersteps of an edge program on placed partitions."""

    def __init__(
        self,
        plan: EdgePlan,
        partitions: Sequence[Partition],
        placed: Sequence[Placed],
        *,
        is_vertex_cut: bool,
    ) -> None:
        self.num_partitions = len(placed)
        self._plan, self._placed, self._is_vertex_cut = plan, placed, is_vertex_cut
        self._partitions = partitions

    def begin(self, engine: Engine, index: int, context: Context) -> PartitionOutputs:
        return self._submit(engine, index, context, ())

    def advance(
        self, engine: Engine, index: int, context: Context, before: Sequence[PartitionOutputs]
    ) -> PartitionOutputs:
        values, _ = before[index].state
        return self._submit(engine, index, context, (values, *(t.mails[index] for t in before)))

    def restored(
        self, engine: Engine, index: int, saved: Sequence[Sequence[Any]]
    ) -> PartitionOutputs:
        near = self._placed[index].near
        tasks = [
            tuple(engine.submit(as_saved, *outputs, num_outputs=len(outputs), near=near))
            for outputs in saved
        ]
        return self._partition_outputs(tasks)

    def complete(
        self, engine: Engine, context: Context, outputs: Sequence[PartitionOutputs]
    ) -> list[PartitionOutputs]:
        if not self._is_vertex_cut:
            return list(outputs)
        return [self._second_half(engine, context, outputs, i) for i in range(len(outputs))]

    def check(self, saved: Sequence[Sequence[Sequence[Any]]]) -> None:
        check_count("partitions", saved, self.num_partitions)
        for partition, tasks in zip(self._partitions, saved, strict=True):
            check_count("tasks", tasks, 2 if self._is_vertex_cut else 1)
            check_count("outputs", tasks[0], 3 + self.num_partitions)
            report, values, frontier, *mails = tasks[0]
            check_report(report, self._plan.aggregates)
            check_array("values", values, self._plan.value_type, partition.num_own)
            check_array("vertices that send", frontier, np.uint32)
            check_below("vertices that send", frontier, partition.num_own)
            if self._is_vertex_cut:  # mails of the first half were consumed by the second
                check_count("outputs", tasks[1], 1 + self.num_partitions)
                report, *mails = tasks[1]
                check_report(report, {})
            kind = np.dtype(self._plan.message_type)
            for receiver, mail in zip(self._partitions, mails, strict=True):
                check_edge_mail(mail, kind, receiver, partition.index)

    def changed_graph(self) -> list[Any]:
        return []  # edge programs do not change the graph

    def take_graph(self, saved: Sequence[Any]) -> None:
        check_count("graphs", saved, 0)

    def _second_half(
        self,
        engine: Engine,
        context: Context,
        outputs: Sequence[PartitionOutputs],
        index: int,
    ) -> PartitionOutputs:
        mails = [output.mails[index] for output in outputs]
        place = self._placed[index]
        sent = engine.submit(
            send, self._plan, context, place.partition, len(place.arrays), *place.arrays,
            *outputs[index].state, *mails,
            num_outputs=1 + self.num_partitions, near=place.near, name="send",
            python=place.python,
        )  # fmt: skip
        return self._partition_outputs([outputs[index].tasks[0], tuple(sent)])

    def _submit(
        self, engine: Engine, index: int, context: Context, inputs: Sequence[Ref]
    ) -> PartitionOutputs:
        place = self._placed[index]
        refs = engine.submit(
            update_and_spread if self._is_vertex_cut else superstep,
            self._plan, context, place.partition, len(place.arrays), *place.arrays, *inputs,
            num_outputs=3 + self.num_partitions, near=place.near, name="superstep",
            python=place.python,
        )  # fmt: skip
        return self._partition_outputs([tuple(refs)])

    def _partition_outputs(self, tasks: Sequence[tuple[Ref, ...]]) -> PartitionOutputs:
        first, last = tasks[0], tasks[-1]
        return PartitionOutputs(tuple(tasks), first[1:3], last[-self.num_partitions :])


def plan_of(program: EdgeProgram, *, offset_type: str, compiled: bool, alone: bool) -> EdgePlan:
    """Compile a program; `alone` allows partitions to run several rounds between exchanges."""
    return EdgePlan(
        text=kernel_text(program, offset_type=offset_type, compiled=compiled),
        value_type=np.dtype(program.value_type).str,
        message_type=np.dtype(program.message_type).str,
        identity=identity_of(program),
        has_frontier=program.active is not None,
        has_settled=program.settled is not None,
        is_weighted=program.is_weighted,
        local_rounds=alone,
        parameters=tuple(_scalar(value) for value in program.parameters.values()),
        aggregates={name: aggregate.combine for name, aggregate in program.aggregates.items()},
    )


def superstep(
    plan: EdgePlan, context: Context, partition: Any, num_arrays: int, *inputs: Any
) -> list[Any]:
    """Run a whole superstep; return the report, values, the frontier, and mails."""
    step, values_and_mails = _open(plan, context, partition, num_arrays, inputs)
    state = _received(step, values_and_mails)
    if context.is_last:
        mails = _no_mails(step)
    elif plan.local_rounds:
        state, mails = step.run_locally(state)
    else:
        mails = step.send(state)
    return [step.report.as_plain(), *_as_outputs(state), *mails]


def update_and_spread(
    plan: EdgePlan, context: Context, partition: Any, num_arrays: int, *inputs: Any
) -> list[Any]:
    """Run the first half of a superstep under a vertex cut."""
    step, values_and_mails = _open(plan, context, partition, num_arrays, inputs)
    state = _received(step, values_and_mails)
    mails = _no_mails(step) if context.is_last else step.spread(state)
    return [step.report.as_plain(), *_as_outputs(state), *mails]


def send(
    plan: EdgePlan, context: Context, partition: Any, num_arrays: int, *inputs: Any
) -> list[Any]:
    """Run the second half of a superstep under a vertex cut."""
    step, (values, frontier, *mails) = _open(plan, context, partition, num_arrays, inputs)
    if context.is_last:
        return [step.report.as_plain(), *_no_mails(step)]
    state = State(values, frontier if plan.has_frontier else None)
    return [step.report.as_plain(), *step.send(step.gather(state, mails))]


def _open(
    plan: EdgePlan, context: Context, partition: Any, num_arrays: int, inputs: Sequence[Any]
) -> tuple[EdgeSuperstep, Sequence[Any]]:
    """Return the superstep, and the inputs after those that describe the partition."""
    partition = partition if isinstance(partition, Partition) else Partition.from_blob(partition)
    step = EdgeSuperstep(plan, partition, inputs[:num_arrays], context)
    return step, inputs[num_arrays:]


def _received(step: EdgeSuperstep, values_and_mails: Sequence[Any]) -> State:
    """Return the state after the mails of the last superstep; without any, the initial state."""
    if not values_and_mails:
        return step.begin()
    return step.receive(values_and_mails[0], values_and_mails[1:])


def _as_outputs(state: State) -> list[NDArray[Any]]:
    return [state.values, _ALL_SEND if state.frontier is None else state.frontier]


def _no_mails(step: EdgeSuperstep) -> list[NDArray[Any]]:
    return [np.empty(0, step.message_type) for _ in range(step.partition.num_partitions)]


def _scalar(value: float) -> float:
    return int(value) if isinstance(value, int | np.integer) else float(value)
