"""Move states and mails to the partitions of a graph that was changed.

Vertices get other numbers and owners; only their ids stay the same.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from talka.graph.graph import GraphData
from talka.graph.partitions.cutting import Partitioned
from talka.graph.partitions.partition import Partition
from talka.graph.programs.combining import combine_by_number, identity_for
from talka.graph.programs.vertex_program import VertexProgram
from talka.graph.supersteps.mail import open_vertex_mail
from talka.graph.supersteps.protocol import Report

_REMOVED = -1


class GraphChange(NamedTuple):
    """A graph before and after changes that its vertices requested."""

    before: GraphData
    after: GraphData
    is_removed: NDArray[np.bool_]
    """Indexed by old vertex number: True if removed. A vertex re-added under the same id is new."""


def move_outputs(
    program: VertexProgram,
    saved: Sequence[Sequence[Any]],
    change: GraphChange,
    partitions: Sequence[Partition],
    cut: Partitioned,
) -> list[list[Any]]:
    """Return the outputs of the last superstep as if it had run on the new partitions.

    Messages to removed vertices are dropped. New vertices have zeros as values and are active.
    """
    num_columns = len(program.columns)
    after = change.after
    moved_to = _new_numbers(change)
    columns = [np.zeros(after.num_vertices, kind) for kind in program.columns.values()]
    halted = np.zeros(after.num_vertices, np.bool_)
    for partition, outputs in zip(partitions, saved, strict=True):
        to = moved_to[partition.own]
        stays = to != _REMOVED
        for column, values in zip([*columns, halted], outputs[1 : num_columns + 2], strict=True):
            column[to[stays]] = values[stays]
    numbers, messages = _pending_messages(program, saved, partitions, moved_to)
    requests = [saved[0][-1].slice(0, 0)]
    moved = []
    for index, partition in enumerate(cut.partitions):
        mine = cut.owners[numbers] == index
        records = _records(numbers[mine], messages[mine])
        mails = [records if q == index else records[:0] for q in range(len(partitions))]
        own = [column[partition.own] for column in (*columns, halted)]
        report = Report(**saved[index][0])
        report.is_quiet = bool(own[-1].all()) and len(records) == 0
        report.num_active = int((~own[-1]).sum())
        moved.append([report.as_plain(), *own, *mails, *requests])
    return moved


def _new_numbers(change: GraphChange) -> NDArray[np.int64]:
    """Return the new vertex number of each old one."""
    before, after = change.before, change.after
    names = after.ids.as_arrow()
    places = pc.index_in(before.ids.as_arrow().cast(names.type), value_set=names)
    is_known = places.is_valid().to_numpy(zero_copy_only=False)
    by_rank = np.full(before.num_vertices, _REMOVED, np.int64)
    by_rank[is_known] = after.ids.numbers[places.drop_null().to_numpy()]
    return np.where(change.is_removed, _REMOVED, by_rank[before.ids.ranks])


def _pending_messages(
    program: VertexProgram,
    saved: Sequence[Sequence[Any]],
    partitions: Sequence[Partition],
    moved_to: NDArray[np.int64],
) -> tuple[NDArray[np.uint32], NDArray[Any]]:
    """Return all undelivered messages by new vertex number, in order of receiver and sender."""
    first = 2 + len(program.columns)
    numbers, messages = [], []
    for partition in partitions:
        for q, outputs in enumerate(saved):
            mail = outputs[first + partition.index]
            if len(mail) == 0:
                continue
            mail_numbers, mail_messages = _addressed(program, partition, q, mail)
            numbers.append(mail_numbers)
            messages.append(mail_messages)
    moved = moved_to[np.concatenate(numbers or [np.empty(0, np.uint32)])]
    pending = np.concatenate(messages or [np.empty(0, program.message_type)])
    exists = moved != _REMOVED
    receivers, pending = moved[exists].astype(np.uint32), pending[exists]
    if program.combine is None:
        return receivers, pending
    return combine_by_number(program.combine, receivers, pending)


def _addressed(
    program: VertexProgram, partition: Partition, q: int, mail: NDArray[Any]
) -> tuple[NDArray[np.uint32], NDArray[Any]]:
    """Return the old numbers of the receivers of mail from partition q, and their messages."""
    names = mail.dtype.names
    if names is not None and names[0] == "number":
        return mail["number"], mail["message"]
    places, messages = open_vertex_mail(
        mail, identity_for(program.combine, np.dtype(program.message_type))
    )
    return partition.own[partition.route_from(q)[places]], messages


def _records(numbers: NDArray[np.uint32], messages: NDArray[Any]) -> NDArray[Any]:
    records = np.empty(len(numbers), [("number", np.uint32), ("message", messages.dtype)])
    records["number"], records["message"] = numbers, messages
    return records
