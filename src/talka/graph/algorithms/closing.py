"""Triangles across partitions: each partition counts with the forward lists that others send.

    superstep 0    send edges to their end of greater number, in whose forward list they are
              1    send each list to all partitions that own a member (see `kernels/triangles.py`)
              2    count, and send counts to the three vertices of each triangle
              3    add up the counts

Messages have three fields: in superstep 0 the owner of the member, the member, the direction; in 1
the vertex, the member, the number of directions; in 2 the two halves of a sum.
"""

from typing import ClassVar

import numpy as np

from talka.graph.algorithms import forward
from talka.graph.kernels.triangles import count_closing
from talka.graph.programs.step import Step
from talka.graph.programs.vertex_program import VertexProgram


class Closing(VertexProgram):
    """Number of edges between the neighbours of each vertex, and number of its neighbours.

    With `by_direction` an edge counts once for each direction it has.
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
        counts = count_closing(numbers, own, askers, asked, size)
        receivers = np.flatnonzero(counts)
        counts = counts[receivers]
        step.send(receivers, forward.messages_of(counts & (2**32 - 1), counts >> 32, 0))

    def _sum(self, step: Step) -> None:
        messages, sums = step.inbox.messages, np.zeros(step.partition.num_own, np.int64)
        counts = messages["first"] + (messages["second"].astype(np.int64) << 32)
        np.add.at(sums, step.inbox.places, counts)
        step["value"] = sums
