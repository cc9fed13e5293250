"""What a general program sees and says in one superstep of one partition."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from talka.errors import InvalidValueError, UnknownNameError
from talka.graph.csr import Csr
from talka.graph.kernels.gathering import GATHERS, find_sent
from talka.graph.kernels.threads import balanced_cuts, over_ranges
from talka.graph.partitions.partition import Partition
from talka.graph.programs.combining import combine_by_number, identity_for
from talka.graph.programs.vertex_program import VertexProgram
from talka.graph.supersteps.mutation import Wishes
from talka.graph.supersteps.protocol import Context
from talka.renaming import renamed_attribute

Mask = NDArray[np.bool_]


class Inbox(NamedTuple):
    """Messages of own vertices: those of place p are `messages[offsets[p]:offsets[p + 1]]`."""

    offsets: NDArray[np.int64]
    messages: NDArray[Any]

    @property
    def places(self) -> NDArray[np.int64]:
        """The place of each message's receiver."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


class Along(NamedTuple):
    """What was sent along edges: an entry for each target slot."""

    combined: NDArray[Any]
    is_sent: Mask
    """Whether there is a message, which `combined` alone does not tell: a sum may be 0."""


class Step:
    """One superstep of one partition. Arrays have an entry for each own vertex, by its place.

    Degrees and vertex numbers are signed (int64), so that their differences may be negative.
    """

    def __init__(
        self,
        program: VertexProgram,
        partition: Partition,
        context: Context,
        columns: Mapping[str, NDArray[Any]],
        *,
        ids: Any,
        active: Mask,
        inbox: Inbox | None,
        combined: NDArray[Any] | None,
        got_message: Mask,
    ) -> None:
        self._program, self._partition, self._context = program, partition, context
        self._columns = dict(columns)
        self._inbox, self._combined = inbox, combined
        self._active, self._got_message = active, got_message
        self._ids = ids
        self.halted: Mask = np.zeros(partition.num_own, np.bool_)
        self.totals: dict[str, list[Any]] = {name: [] for name in program.aggregates}
        self.wishes = Wishes()
        self.num_edges_walked = 0
        self._sent: list[tuple[NDArray[np.uint32], NDArray[Any]]] = []
        self._along: Along | None = None

    # What it sees.

    @property
    def superstep(self) -> int:
        return self._context.superstep

    @property
    def num_vertices(self) -> int:
        """Of the whole graph."""
        return self._context.num_vertices

    @property
    def aggregates(self) -> Mapping[str, Any]:
        """What all partitions said in the superstep before, and what `master` made of it."""
        return self._context.aggregates

    @property
    def partition(self) -> Partition:
        """The partition as it lies in memory, for kernels."""
        return self._partition

    @cached_property
    def vertices(self) -> NDArray[np.int64]:
        """Numbers of own vertices, ascending."""
        return self._partition.own.astype(np.int64)

    @property
    def ids(self) -> Any:
        """What own vertices are called outside: a numpy array of numbers, or strings in Arrow."""
        return self._ids

    @cached_property
    def out_degrees(self) -> NDArray[np.int64]:
        return self._partition.out_degrees.astype(np.int64)

    @cached_property
    def in_degrees(self) -> NDArray[np.int64]:
        return self._partition.in_degrees.astype(np.int64)

    @property
    def edges(self) -> Csr:
        """Out-edges: rows are places, columns are slots; `numbers_of_slots` says who they are."""
        return self._partition.out

    @cached_property
    def numbers_of_slots(self) -> NDArray[np.int64]:
        """The vertex number of each target slot."""
        return self._partition.target_numbers.astype(np.int64)

    @property
    def active(self) -> Mask:
        """Who has not voted to halt, or was sent a message."""
        return self._active

    @property
    def inbox(self) -> Inbox:
        """All messages; only without `combine`."""
        if self._inbox is None:
            raise InvalidValueError("combine", self._program.combine, "None where `inbox` is read")
        return self._inbox

    @property
    def combined(self) -> NDArray[Any]:
        """One message for each own vertex; only with `combine`. See `got_message`."""
        if self._combined is None:
            raise InvalidValueError("combine", None, "given where `combined` is read")
        return self._combined

    @property
    def got_message(self) -> Mask:
        """Who was sent a message, even if messages add up to what `combined` is without any."""
        return self._got_message

    @property
    def identity(self) -> Any:
        """The value of `combined` for a vertex without messages: the identity of `combine`."""
        return identity_for(self._program.combine, np.dtype(self._program.message_type))

    nothing = renamed_attribute("nothing", "identity")

    @property
    def num_threads(self) -> int:
        """Threads that a kernel called here may use."""
        return self._context.num_threads

    def __getitem__(self, column: str) -> NDArray[Any]:
        """A column of values. It is immutable: assign a new one."""
        if column not in self._columns:
            raise UnknownNameError("column", column, tuple(self._columns))
        return self._columns[column]

    def __setitem__(self, column: str, values: ArrayLike) -> None:
        before = self[column]
        self._columns[column] = np.ascontiguousarray(
            np.broadcast_to(np.asarray(values), before.shape), before.dtype
        )

    # What it says.

    def send(self, numbers: ArrayLike, messages: ArrayLike) -> None:
        """Messages to any vertices, by number."""
        given = np.asarray(numbers).reshape(-1)
        if len(given):
            wrong = min(int(given.min()), 0) or int(given.max())
            if not 0 <= wrong < self.num_vertices:
                allowed = f"at least 0 and below the number of vertices, {self.num_vertices}"
                raise InvalidValueError("a vertex number", wrong, allowed)
        to = np.ascontiguousarray(given, np.uint32)
        kind = np.dtype(self._program.message_type)
        said = np.asarray(messages).astype(kind, copy=False)
        said = np.broadcast_to(said, to.shape)
        self._sent.append((to, np.ascontiguousarray(said)))

    def send_along_edges(self, messages: ArrayLike, *, where: Mask | None = None) -> None:
        """The message of each own vertex to all of its out-neighbours; of those `where` is true."""
        kind = np.dtype(self._program.message_type)
        said = np.ascontiguousarray(
            np.broadcast_to(np.asarray(messages), self._partition.own.shape), kind
        )
        if self._program.combine is None or (where is not None and _is_rare(where, self.edges)):
            self._send_each(said, where)
            return
        self._gather(said, where)

    def aggregate(self, name: str, value: Any) -> None:
        if name not in self.totals:
            raise UnknownNameError("aggregate", name, tuple(self.totals))
        self.totals[name].append(value.item() if isinstance(value, np.generic) else value)

    def vote_to_halt(self, where: Mask | None = None) -> None:
        """Own vertices rest until a message reaches them."""
        self.halted = self.halted | (True if where is None else where)

    def add_vertices(self, ids: Any) -> None:
        self.wishes.add("add_vertex", ids, ids, self._program)

    def remove_vertices(self, ids: Any) -> None:
        """And all edges at them."""
        self.wishes.add("remove_vertex", ids, ids, self._program)

    def add_edges(self, sources: Any, targets: Any, weights: ArrayLike | None = None) -> None:
        """Vertices that do not exist are added."""
        self.wishes.add("add_edge", sources, targets, self._program, weights)

    def remove_edges(self, sources: Any, targets: Any) -> None:
        """All edges between these ends."""
        self.wishes.add("remove_edge", sources, targets, self._program)

    # What the task takes from it.

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        return self._columns

    def along(self) -> Along | None:
        return self._along

    def said(self) -> tuple[NDArray[np.uint32], NDArray[Any]]:
        """What was sent one by one, combined where that is allowed."""
        kind = np.dtype(self._program.message_type)
        if not self._sent:
            return np.empty(0, np.uint32), np.empty(0, kind)
        numbers = np.concatenate([to for to, _ in self._sent])
        messages = np.concatenate([said for _, said in self._sent])
        if self._program.combine is None:
            return numbers, messages
        return combine_by_number(self._program.combine, numbers, messages)

    def _send_each(self, said: NDArray[Any], where: Mask | None) -> None:
        out, slots = self.edges, self._partition.target_numbers
        degrees = out.degrees()
        if where is None:
            numbers, messages = slots[out.columns], np.repeat(said, degrees)
        else:
            rows = np.flatnonzero(where)
            entries = _entries_of(out.offsets, rows, degrees[rows])
            numbers = slots[out.columns[entries]]
            messages = np.repeat(said[rows], degrees[rows])
        self.num_edges_walked += len(numbers)
        self._sent.append((numbers, messages))

    def _gather(self, said: NDArray[Any], where: Mask | None) -> None:
        assert self._program.combine is not None
        into = self._partition.into
        combined = np.empty(into.num_rows, said.dtype)
        cuts = balanced_cuts(into.offsets, self.num_threads)
        kernel = GATHERS[self._program.combine]
        nothing = said.dtype.type(self.identity)
        if where is None:
            over_ranges(kernel, cuts, into.offsets, into.columns, said, nothing, combined)
            is_sent = into.offsets[1:] != into.offsets[:-1]
        else:
            said = np.where(where, said, nothing)
            over_ranges(kernel, cuts, into.offsets, into.columns, said, nothing, combined)
            is_sent = np.empty(into.num_rows, np.bool_)
            sends = np.ascontiguousarray(where, np.bool_)
            rows = (into.offsets, into.columns, sends, combined, nothing, is_sent)
            over_ranges(find_sent, cuts, *rows)
        self.num_edges_walked += into.num_entries
        if self._along is None:
            self._along = Along(combined, is_sent)
        else:
            self._sent.append((self._partition.target_numbers[is_sent], combined[is_sent]))


def _is_rare(where: Mask, edges: Csr) -> bool:
    """Whether one by one is cheaper: sorting a message costs about as much as gathering ten."""
    return bool(10 * edges.degrees()[where].sum() < edges.num_entries)


def _entries_of(
    offsets: NDArray[Any], rows: NDArray[np.int64], degrees: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Entries of these rows, one after the other."""
    starts = np.repeat(offsets[rows].astype(np.int64), degrees)
    before = np.repeat(np.cumsum(degrees) - degrees, degrees)
    return starts + np.arange(len(starts)) - before
