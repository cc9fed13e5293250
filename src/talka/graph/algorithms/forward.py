"""Forward lists of vertices as messages, and as they come out of messages (`closing.py`)."""

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
    messages = np.empty(len(second), MESSAGE)
    messages["first"], messages["second"], messages["ways"] = first, second, ways
    return messages


def owners_of_slots(partition: Partition) -> NDArray[np.int64]:
    """The partition in which the vertex of each target slot lives."""
    of_mirrors = np.repeat(
        np.arange(partition.num_partitions), np.diff(partition.target_mirror_offsets)
    )
    return np.concatenate([np.full(partition.num_own, partition.index), of_mirrors])


class Received(NamedTuple):
    """Lists that arrived at a partition: of its own vertices, and of all that have one as a member."""

    own: Neighbours
    """An own vertex in each row."""
    askers: NDArray[np.uint32]
    """Vertices that may live anywhere, own ones too."""
    asked: Neighbours
    """A row for each of them."""
    num_neighbours: NDArray[np.int64]
    """Of own vertices."""


class Lists(NamedTuple):
    """Entries of all lists, by place of their vertex, then by member; no entry is there twice."""

    places: NDArray[np.int64]
    members: NDArray[np.int64]
    owners: NDArray[np.uint32]
    """Of the members."""
    ways: NDArray[np.uint8]
    """In how many directions the edge runs."""

    def for_owner(
        self, owner: int, num_places: int
    ) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """Which entries an owner needs, and to which of its vertices each of them goes.

        All of a list, to the first of its members that live there.
        """
        is_there = self.owners == owner
        places, first = np.unique(self.places[is_there], return_index=True)
        receivers = np.full(num_places, -1, np.int64)
        receivers[places] = self.members[is_there][first]
        to = receivers[self.places]
        entries = np.flatnonzero(to >= 0)
        return entries, to[entries].astype(np.uint32)


def lists_of_edges(inbox: Inbox) -> Lists:
    """Messages are (owner of the member, member, direction 1 or 2)."""
    messages = inbox.messages
    keys = inbox.places << 33 | messages["second"].astype(np.int64) << 1 | (messages["ways"] == 2)
    order = np.argsort(keys)
    keys = keys[order]
    is_other_way = np.diff(keys, prepend=-1) != 0  # else a copy
    starts = np.flatnonzero(np.diff(keys >> 1, prepend=-1))
    found = keys[starts] >> 1
    ways = np.add.reduceat(is_other_way, starts, dtype=np.uint8) if len(starts) else starts
    owners = messages["first"][order[starts]]
    return Lists(found >> 32, found & 2**32 - 1, owners, ways.astype(np.uint8))


def received(inbox: Inbox, own: NDArray[np.uint32], num_vertices: int) -> Received:
    """Messages are (vertex, member, ways).

    Each list is in one piece and in order, as one vertex sent it to one receiver. Every vertex has
    its own list from itself, so those are in the order of `own`.
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
    """Refuse lists that would lead the kernel astray: a checkpoint may hold anything."""
    for numbers in (vertices, members):
        check_below("vertices", numbers, num_vertices)
    if ((vertices[1:] == vertices[:-1]) & (members[1:] <= members[:-1])).any():
        raise PayloadError("holds a list of neighbours that is not in order")
