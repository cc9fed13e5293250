"""Supersteps of a vertex program as tasks on an engine."""

from collections.abc import Sequence
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from talka.engine import Engine, Ref
from talka.graph.graph import AnyGraph
from talka.graph.partitions.cutting import Partitioned
from talka.graph.partitions.partition import Partition
from talka.graph.partitions.placing import Placed, place, release
from talka.graph.programs.vertex_program import VertexProgram
from talka.graph.supersteps.graph_change import GraphChange, move_outputs
from talka.graph.supersteps.mutation import as_arrow, from_arrow, mutated
from talka.graph.supersteps.protocol import Context, PartitionOutputs, as_saved
from talka.graph.supersteps.restoring import (
    check_array,
    check_count,
    check_indices,
    check_report,
    check_vertex_mail,
)
from talka.graph.supersteps.vertex_superstep import VertexSuperstep


class VertexStepper(Generic[AnyGraph]):
    """Submits supersteps of a vertex program, and cuts the graph again after changes."""

    def __init__(
        self,
        engine: Engine,
        program: VertexProgram,
        graph: AnyGraph,
        num_partitions: int,
        how: str,
    ) -> None:
        self.num_partitions = num_partitions
        self.graph = self._original = graph
        self._engine, self._program, self._how = engine, program, how
        self._num_columns = len(program.columns)
        self.cut, self._placed = self._cut_and_place(graph)

    def begin(self, engine: Engine, index: int, context: Context) -> PartitionOutputs:
        return self._submit(engine, index, context, ())

    def advance(
        self, engine: Engine, index: int, context: Context, before: Sequence[PartitionOutputs]
    ) -> PartitionOutputs:
        mails = [output.mails[index] for output in before]
        return self._submit(engine, index, context, (*before[index].state, *mails))

    def complete(
        self, engine: Engine, context: Context, outputs: Sequence[PartitionOutputs]
    ) -> list[PartitionOutputs]:
        """Apply requested changes of the graph, if any, and move states and mails along."""
        if not self._program.mutates or context.is_last:
            return list(outputs)
        tables = engine.fetch([output.tasks[0][-1] for output in outputs])
        if not any(table.num_rows for table in tables):
            return list(outputs)
        saved = [engine.fetch(list(output.tasks[0])) for output in outputs]
        before, partitions = self.graph, self.cut.partitions
        release(engine, self._placed)
        self.graph, is_removed = mutated(before, tables)
        self.cut, self._placed = self._cut_and_place(self.graph)
        moved = move_outputs(
            self._program, saved, GraphChange(before, self.graph, is_removed), partitions, self.cut
        )
        engine.release([ref for output in outputs for ref in output.refs])
        return [self.restored(engine, index, [task]) for index, task in enumerate(moved)]

    def restored(
        self, engine: Engine, index: int, saved: Sequence[Sequence[Any]]
    ) -> PartitionOutputs:
        [outputs] = saved
        near = self._placed[index].near
        return self._partition_outputs(
            engine.submit(as_saved, *outputs, num_outputs=len(outputs), near=near)
        )

    def check(self, saved: Sequence[Sequence[Sequence[Any]]]) -> None:
        program, num_mutations = self._program, int(self._program.mutates)
        kind = np.dtype(program.message_type)
        check_count("partitions", saved, self.num_partitions)
        columns_of: list[dict[str, Any]] = []
        messages_of: list[list[Any]] = [[] for _ in self.cut.partitions]
        for partition, tasks in zip(self.cut.partitions, saved, strict=True):
            check_count("tasks", tasks, 1)
            num_outputs = 2 + self._num_columns + self.num_partitions + num_mutations
            check_count("outputs", tasks[0], num_outputs)
            report, *outputs = tasks[0]
            check_report(report, program.aggregates)
            columns = dict(zip(program.columns, outputs, strict=False))
            for name, values in columns.items():
                check_array(f"values of {name!r}", values, program.columns[name], partition.num_own)
            halted, *mails = outputs[self._num_columns :]
            check_array("votes", halted, np.bool_, partition.num_own)
            for receiver, mail in zip(self.cut.partitions, mails, strict=False):
                messages = check_vertex_mail(mail, kind, receiver, partition.index)
                messages_of[receiver.index].append(messages)
            columns_of.append(columns)
        for partition, columns, messages in zip(
            self.cut.partitions, columns_of, messages_of, strict=True
        ):
            limits = {"num_own": partition.num_own, "num_vertices": self.graph.num_vertices}
            check_indices(program.indices, limits, columns, messages)

    def changed_graph(self) -> list[Any]:
        return [] if self.graph is self._original else as_arrow(self.graph)

    def take_graph(self, saved: Sequence[Any]) -> None:
        if len(saved):
            check_count("tables of a graph", saved, 2 if self._program.mutates else 0)
            release(self._engine, self._placed)
            self.graph = from_arrow(saved, self._original)
            self.cut, self._placed = self._cut_and_place(self.graph)

    def close(self) -> None:
        release(self._engine, self._placed)

    def _cut_and_place(self, graph: AnyGraph) -> tuple[Partitioned, list[Placed]]:
        """Cut a graph, and place each partition with the ids of its vertices and all owners."""
        cut = graph.cut(self.num_partitions, self._how)
        owners = cut.owners if self.num_partitions > 1 else cut.owners[:0]
        names = graph.ids.ascending
        arrays = []
        for partition in cut.partitions:
            own = graph.ids.ranks[partition.own]
            arrays.append((names.take(own) if graph.ids.are_strings else names[own], owners))
        return cut, place(self._engine, cut.partitions, arrays, python=self._program.python)

    def _submit(
        self, engine: Engine, index: int, context: Context, inputs: Sequence[Ref]
    ) -> PartitionOutputs:
        place = self._placed[index]
        context = context._replace(num_vertices=self.graph.num_vertices)
        refs = engine.submit(
            superstep, self._program, context, place.partition, *place.arrays, *inputs,
            num_outputs=2 + self._num_columns + self.num_partitions + self._program.mutates,
            near=place.near, name="superstep", python=place.python,
        )  # fmt: skip
        return self._partition_outputs(refs)

    def _partition_outputs(self, refs: Sequence[Ref]) -> PartitionOutputs:
        end = 2 + self._num_columns
        return PartitionOutputs(
            (tuple(refs),), tuple(refs[1:end]), tuple(refs[end : end + self.num_partitions])
        )


def superstep(
    program: VertexProgram,
    context: Context,
    partition: Any,
    ids: Any,
    owners: Any,
    *state_and_mails: Any,
) -> list[Any]:
    """Run a superstep; return the report, columns, halting votes, mails, and requested changes.

    The last of these only if the program may change the graph.
    """
    partition = partition if isinstance(partition, Partition) else Partition.from_blob(partition)
    columns, halted, mails = _inputs(program, partition, state_and_mails)
    step, sent = (run := VertexSuperstep(program, partition, owners, context)).run(
        ids, columns, halted, mails
    )
    requests = [step.requests.as_table()] if program.mutates else []
    return [run.report.as_plain(), *step.columns.values(), step.halted, *sent, *requests]


def _inputs(
    program: VertexProgram, partition: Partition, state_and_mails: Sequence[Any]
) -> tuple[dict[str, NDArray[Any]], NDArray[np.bool_], Sequence[NDArray[Any]]]:
    """Return columns, halting votes and mails; in superstep 0 zeros, no votes and no mails."""
    if state_and_mails:
        num_columns = len(program.columns)
        columns = dict(zip(program.columns, state_and_mails[:num_columns], strict=True))
        return columns, state_and_mails[num_columns], state_and_mails[num_columns + 1 :]
    columns = {name: np.zeros(partition.num_own, kind) for name, kind in program.columns.items()}
    no_mail = np.empty(0, program.message_type)
    return columns, np.zeros(partition.num_own, np.bool_), [no_mail] * partition.num_partitions
