"""Triangles across partitions: forward lists travel once to whoever has a member, counts travel back.

    superstep 0    edges to their end of greater number, whose forward list they are in
               1    lists to every partition that owns a member (`kernels/triangles.py` says why)
               2    what was found to the three vertices of each triangle
               3    sums

A message has three fields for all of them: in 0 the owner of the member, the member, the direction;
in 1 the vertex, the member, the number of directions; in 2 the two halves of a sum.
"""

from typing import ClassVar

import numpy as np

from talka.graph.algorithms import forward
from talka.graph.kernels.triangles import count_closing
from talka.graph.programs.step import Step
from talka.graph.programs.vertex_program import VertexProgram


class Closing(VertexProgram):
    """Edges between neighbours of each vertex, and how many neighbours it has.

    `by_direction`: an edge counts once for each direction it has.
    """

    columns: ClassVar = {"value": np.int64, "num_neighbours": np.int64}
    message_type = forward.MESSAGE

    def __init__(self, *, by_direction: bool) -> None:
        self.by_direction = by_direction

    def compute(self, step: Step) -> None:
        (self._send_edges, self._send_lists, self._send_counts, self._sum)[step.superstep](step)
        step.vote_to_halt()

    def _send_edges(self, step: Step) -> None:
        partition = step.partition
        owners = forward.owners_of_slots(partition)[partition.out.columns]
        sources = np.repeat(partition.own, partition.out.degrees())
        targets = partition.target_numbers[partition.out.columns]
        down, up = sources > targets, sources < targets
        step.send(sources[down], forward.messages_of(owners[down], targets[down], 1))
        step.send(targets[up], forward.messages_of(partition.index, sources[up], 2))

    def _send_lists(self, step: Step) -> None:
        lists = forward.lists_of_edges(step.inbox)
        ways = lists.ways if self.by_direction else np.ones_like(lists.ways)
        vertices = step.partition.own[lists.places]
        messages = forward.messages_of(vertices, lists.members, ways)
        step.send(vertices, messages)
        for q in range(step.partition.num_partitions):
            if q != step.partition.index:
                entries, receivers = lists.for_owner(q, step.partition.num_own)
                step.send(receivers, messages.take(entries))

    def _send_counts(self, step: Step) -> None:
        numbers, size = step.partition.own, step.num_vertices
        own, askers, asked, step["num_neighbours"] = forward.received(step.inbox, numbers, size)
        found = count_closing(numbers, own, askers, asked, size)
        some = np.flatnonzero(found)
        step.send(some, forward.messages_of(found[some] & (2**32 - 1), found[some] >> 32, 0))

    def _sum(self, step: Step) -> None:
        messages, sums = step.inbox.messages, np.zeros(step.partition.num_own, np.int64)
        found = messages["first"] + (messages["second"].astype(np.int64) << 32)
        np.add.at(sums, step.inbox.places, found)
        step["value"] = sums
