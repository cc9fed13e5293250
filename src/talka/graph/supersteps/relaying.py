"""States and mails of a graph that was changed, for the partitions of the new one.

Vertices have other numbers and other owners then; their ids are what stays.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from talka.graph.partitions.cutting import Partitioned
from talka.graph.partitions.partition import Partition
from talka.graph.programs.combining import combine_by_number, identity_for
from talka.graph.programs.vertex_program import VertexProgram
from talka.graph.supersteps.mail import sent_in
from talka.graph.supersteps.protocol import Report

if TYPE_CHECKING:
    from talka.graph.graph import Graph

_GONE = -1


class Move(NamedTuple):
    """From one graph to the next."""

    before: "Graph"
    after: "Graph"
    is_gone: NDArray[np.bool_]
    """By old number: removed, and if there is one of that id now, it is another."""


def relaid(
    program: VertexProgram,
    saved: Sequence[Sequence[Any]],
    move: Move,
    partitions: Sequence[Partition],
    cut: Partitioned,
) -> list[list[Any]]:
    """Outputs of the last superstep as if it had run on the new partitions.

    Messages to vertices that are gone are dropped. New vertices have zeros and are active.
    """
    num_columns = len(program.columns)
    after = move.after
    moved_to = _new_numbers(move)
    columns = [np.zeros(after.num_vertices, kind) for kind in program.columns.values()]
    halted = np.zeros(after.num_vertices, np.bool_)
    for partition, outputs in zip(partitions, saved, strict=True):
        to = moved_to[partition.own]
        stays = to != _GONE
        for column, values in zip([*columns, halted], outputs[1 : num_columns + 2], strict=True):
            column[to[stays]] = values[stays]
    numbers, messages = _under_way(program, saved, partitions, moved_to)
    wishes = [saved[0][-1].slice(0, 0)]
    relaid = []
    for index, partition in enumerate(cut.partitions):
        mine = cut.owners[numbers] == index
        records = _records(numbers[mine], messages[mine])
        mails = [records if q == index else records[:0] for q in range(len(partitions))]
        own = [column[partition.own] for column in (*columns, halted)]
        report = Report(**saved[index][0])
        report.is_quiet = bool(own[-1].all()) and len(records) == 0
        report.num_active = int((~own[-1]).sum())
        relaid.append([report.as_plain(), *own, *mails, *wishes])
    return relaid


def _new_numbers(move: Move) -> NDArray[np.int64]:
    """The new number of each old one."""
    before, after = move.before, move.after
    names = after.ids.as_arrow()
    places = pc.index_in(before.ids.as_arrow().cast(names.type), value_set=names)
    found = places.is_valid().to_numpy(zero_copy_only=False)
    by_rank = np.full(before.num_vertices, _GONE, np.int64)
    by_rank[found] = after.ids.numbers[places.drop_null().to_numpy()]
    return np.where(move.is_gone, _GONE, by_rank[before.ids.ranks])


def _under_way(
    program: VertexProgram,
    saved: Sequence[Sequence[Any]],
    partitions: Sequence[Partition],
    moved_to: NDArray[np.int64],
) -> tuple[NDArray[np.uint32], NDArray[Any]]:
    """All messages by new number, in the order of receivers and senders."""
    first = 2 + len(program.columns)
    numbers, messages = [], []
    for partition in partitions:
        for q, outputs in enumerate(saved):
            mail = outputs[first + partition.index]
            if len(mail) == 0:
                continue
            to, said = _addressed(program, partition, q, mail)
            numbers.append(to)
            messages.append(said)
    moved = moved_to[np.concatenate(numbers or [np.empty(0, np.uint32)])]
    under_way = np.concatenate(messages or [np.empty(0, program.message_type)])
    arrives = moved != _GONE
    found, under_way = moved[arrives].astype(np.uint32), under_way[arrives]
    if program.combine is None:
        return found, under_way
    return combine_by_number(program.combine, found, under_way)


def _addressed(
    program: VertexProgram, partition: Partition, q: int, mail: NDArray[Any]
) -> tuple[NDArray[np.uint32], NDArray[Any]]:
    """Old numbers of those whom this mail of partition q is for, and what each gets."""
    names = mail.dtype.names
    if names is not None and names[0] == "number":
        return mail["number"], mail["message"]
    places, messages = sent_in(mail, identity_for(program.combine, np.dtype(program.message_type)))
    return partition.own[partition.route_from(q)[places]], messages


def _records(numbers: NDArray[np.uint32], messages: NDArray[Any]) -> NDArray[Any]:
    records = np.empty(len(numbers), [("number", np.uint32), ("message", messages.dtype)])
    records["number"], records["message"] = numbers, messages
    return records
