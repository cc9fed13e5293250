"""Supersteps of an edge program as tasks on an engine.

Under an edge cut a superstep of a partition is one task: receive, update, send. Under a vertex cut
a vertex has edges in several partitions, so there are two: receive, update, spread the new values
to where its edges are; and gather those, send.
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
from talka.graph.supersteps.edge_superstep import EdgePlan, EdgeSuperstep, State
from talka.graph.supersteps.protocol import Context, Turn, as_saved
from talka.graph.supersteps.restoring import (
    check_array,
    check_below,
    check_count,
    check_edge_mail,
    check_report,
)

_EVERYBODY = np.zeros(0, np.uint32)  # a frontier that is not kept, because all speak


class EdgeStepper:
    """Runs an edge program on partitions that were placed."""

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

    def begin(self, engine: Engine, index: int, context: Context) -> Turn:
        return self._submit(engine, index, context, ())

    def advance(self, engine: Engine, index: int, context: Context, before: Sequence[Turn]) -> Turn:
        values, _ = before[index].state
        return self._submit(engine, index, context, (values, *(t.mails[index] for t in before)))

    def restored(self, engine: Engine, index: int, saved: Sequence[Sequence[Any]]) -> Turn:
        near = self._placed[index].near
        tasks = [
            tuple(engine.submit(as_saved, *outputs, num_outputs=len(outputs), near=near))
            for outputs in saved
        ]
        return self._turn(tasks)

    def complete(self, engine: Engine, context: Context, turns: Sequence[Turn]) -> list[Turn]:
        if not self._is_vertex_cut:
            return list(turns)
        return [self._second_half(engine, context, turns, i) for i in range(len(turns))]

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
            if self._is_vertex_cut:  # the first half was used already
                check_count("outputs", tasks[1], 1 + self.num_partitions)
                report, *mails = tasks[1]
                check_report(report, {})
            kind = np.dtype(self._plan.message_type)
            for receiver, mail in zip(self._partitions, mails, strict=True):
                check_edge_mail(mail, kind, receiver, partition.index)

    def changed_graph(self) -> list[Any]:
        return []  # edge programs change no graph

    def take_graph(self, saved: Sequence[Any]) -> None:
        check_count("graphs", saved, 0)

    def _second_half(
        self, engine: Engine, context: Context, turns: Sequence[Turn], index: int
    ) -> Turn:
        arrived = [turn.mails[index] for turn in turns]
        place = self._placed[index]
        sent = engine.submit(
            send, self._plan, context, place.partition, len(place.arrays), *place.arrays,
            *turns[index].state, *arrived,
            num_outputs=1 + self.num_partitions, near=place.near, name="send",
            python=place.python,
        )  # fmt: skip
        return self._turn([turns[index].tasks[0], tuple(sent)])

    def _submit(self, engine: Engine, index: int, context: Context, given: Sequence[Ref]) -> Turn:
        place = self._placed[index]
        refs = engine.submit(
            update_and_spread if self._is_vertex_cut else superstep,
            self._plan, context, place.partition, len(place.arrays), *place.arrays, *given,
            num_outputs=3 + self.num_partitions, near=place.near, name="superstep",
            python=place.python,
        )  # fmt: skip
        return self._turn([tuple(refs)])

    def _turn(self, tasks: Sequence[tuple[Ref, ...]]) -> Turn:
        first, last = tasks[0], tasks[-1]
        return Turn(tuple(tasks), first[1:3], last[-self.num_partitions :])


def plan_of(program: EdgeProgram, *, offset_type: str, compiled: bool, alone: bool) -> EdgePlan:
    """Compile a program; `alone`: partitions may take rounds of their own."""
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
        aggregates={name: one.combine for name, one in program.aggregates.items()},
    )


def superstep(
    plan: EdgePlan, context: Context, partition: Any, num_arrays: int, *inputs: Any
) -> list[Any]:
    """A whole superstep: outputs are the report, values, who spoke, and mails."""
    step, given = _open(plan, context, partition, num_arrays, inputs)
    state = step.receive(given[0], given[1:]) if given else step.begin()
    if context.is_last:
        mails = _no_mails(step)
    elif plan.local_rounds:
        state, mails = step.go_on_alone(state)
    else:
        mails = step.send(state)
    return [step.report.as_plain(), *_as_outputs(state), *mails]


def update_and_spread(
    plan: EdgePlan, context: Context, partition: Any, num_arrays: int, *inputs: Any
) -> list[Any]:
    """The first half under a vertex cut."""
    step, given = _open(plan, context, partition, num_arrays, inputs)
    state = step.receive(given[0], given[1:]) if given else step.begin()
    mails = _no_mails(step) if context.is_last else step.spread(state)
    return [step.report.as_plain(), *_as_outputs(state), *mails]


def send(
    plan: EdgePlan, context: Context, partition: Any, num_arrays: int, *inputs: Any
) -> list[Any]:
    """The second half under a vertex cut."""
    step, (values, frontier, *arrived) = _open(plan, context, partition, num_arrays, inputs)
    if context.is_last:
        return [step.report.as_plain(), *_no_mails(step)]
    state = State(values, frontier if plan.has_frontier else None)
    mails = step.send(step.gather(state, arrived))
    return [step.report.as_plain(), *mails]


def _open(
    plan: EdgePlan, context: Context, partition: Any, num_arrays: int, inputs: Sequence[Any]
) -> tuple[EdgeSuperstep, Sequence[Any]]:
    partition = partition if isinstance(partition, Partition) else Partition.from_blob(partition)
    step = EdgeSuperstep(plan, partition, inputs[:num_arrays], context)
    return step, inputs[num_arrays:]


def _as_outputs(state: State) -> list[NDArray[Any]]:
    return [state.values, _EVERYBODY if state.frontier is None else state.frontier]


def _no_mails(step: EdgeSuperstep) -> list[NDArray[Any]]:
    return [np.empty(0, step.message_type) for _ in range(step.partition.num_partitions)]


def _scalar(value: float) -> float:
    return int(value) if isinstance(value, int | np.integer) else float(value)
