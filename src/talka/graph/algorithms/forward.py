"""Forward lists of vertices, to and from messages (`closing.py`).

The forward list of a vertex has its neighbours of smaller number (`kernels/simple.py`).
"""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.errors import PayloadError
from talka.graph.kernels.offsets import row_offsets
from talka.graph.kernels.ordering import present
from talka.graph.kernels.simple import Neighbours
from talka.graph.partitions.partition import Partition
from talka.graph.programs.step import Inbox
from talka.graph.supersteps.restoring import check_below

MESSAGE: Final = np.dtype([("first", np.uint32), ("second", np.uint32), ("ways", np.uint8)])


def messages_of(first: Any, second: NDArray[Any], ways: Any) -> NDArray[Any]:
    """Return messages with these fields."""
    messages = np.empty(len(second), MESSAGE)
    messages["first"], messages["second"], messages["ways"] = first, second, ways
    return messages


def owners_of_slots(partition: Partition) -> NDArray[np.int64]:
    """Return the partition that owns the vertex of each target slot."""
    of_mirrors = np.repeat(
        np.arange(partition.num_partitions), np.diff(partition.target_mirror_offsets)
    )
    return np.concatenate([np.full(partition.num_own, partition.index), of_mirrors])


class Received(NamedTuple):
    """Forward lists that arrived: of own vertices, and all that have an own vertex as a member."""

    own: Neighbours
    """Forward lists of own vertices, a row for each."""
    askers: NDArray[np.uint32]
    """Numbers of the vertices, in any partition, whose lists have an own vertex as a member."""
    asked: Neighbours
    """Forward lists of the askers, a row for each."""
    num_neighbours: NDArray[np.int64]
    """Number of neighbours of each own vertex."""


class Lists(NamedTuple):
    """Entries of all lists, ordered by place of the vertex, then by member, without duplicates."""

    places: NDArray[np.int64]
    members: NDArray[np.int64]
    owners: NDArray[np.uint32]
    """Partition that owns each member."""
    ways: NDArray[np.uint8]
    """Number of directions of each edge: 1 or 2."""

    def for_owner(
        self, owner: int, num_places: int
    ) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """Return the entries that an owner needs and the receiver of each, one of its vertices.

        It needs the whole list if it owns a member; the first such member is the receiver.
        """
        is_owned = self.owners == owner
        places, first = np.unique(self.places[is_owned], return_index=True)
        list_receivers = np.full(num_places, -1, np.int64)
        list_receivers[places] = self.members[is_owned][first]
        receivers = list_receivers[self.places]
        entries = np.flatnonzero(receivers >= 0)
        return entries, receivers[entries].astype(np.uint32)


def lists_of_edges(inbox: Inbox) -> Lists:
    """Return the lists from messages (owner of the member, member, direction 1 or 2)."""
    messages = inbox.messages
    keys = inbox.places << 33 | messages["second"].astype(np.int64) << 1 | (messages["ways"] == 2)
    order = np.argsort(keys)
    keys = keys[order]
    is_new_direction = np.diff(keys, prepend=-1) != 0  # otherwise a parallel edge
    starts = np.flatnonzero(np.diff(keys >> 1, prepend=-1))
    entries = keys[starts] >> 1
    ways = np.add.reduceat(is_new_direction, starts, dtype=np.uint8) if len(starts) else starts
    owners = messages["first"][order[starts]]
    return Lists(entries >> 32, entries & 2**32 - 1, owners, ways.astype(np.uint8))


def received(inbox: Inbox, own: NDArray[np.uint32], num_vertices: int) -> Received:
    """Return the lists from messages (vertex, member, ways).

    Each list is contiguous and in order, since it was sent by one vertex to one receiver. Every
    vertex sends its list to itself too, so the lists of own vertices are in the order of `own`.
    """
    vertices, members, ways = (
        np.ascontiguousarray(inbox.messages[name]) for name in inbox.messages.dtype.names or ()
    )
    receivers = inbox.places
    starts = np.flatnonzero(np.diff(vertices.astype(np.int64), prepend=-1))
    _check_lists(vertices, members, num_vertices)
    is_own = vertices == own[receivers]
    lengths = np.bincount(receivers[is_own], minlength=len(own))
    asking, _ = present(own, members)
    num_asking = np.bincount(asking, minlength=len(own))
    return Received(
        Neighbours(row_offsets(lengths), members[is_own], ways[is_own]),
        vertices[starts],
        Neighbours(row_offsets(np.diff(starts, append=len(vertices))), members, ways),
        lengths + num_asking,
    )


def _check_lists(
    vertices: NDArray[np.uint32], members: NDArray[np.uint32], num_vertices: int
) -> None:
    """Raise `PayloadError` for lists with wrong indices or order: a checkpoint may be damaged."""
    for numbers in (vertices, members):
        check_below("vertices", numbers, num_vertices)
    if ((vertices[1:] == vertices[:-1]) & (members[1:] <= members[:-1])).any():
        raise PayloadError("holds a list of neighbours that is not in order")
