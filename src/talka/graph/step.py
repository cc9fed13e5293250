"""What a general program sees and says in one superstep of one partition."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from talka.errors import InvalidValueError, UnknownNameError
from talka.graph.combining import combine_by_number, nothing_for
from talka.graph.context import Context
from talka.graph.csr import Csr
from talka.graph.kernels.gathering import GATHERS
from talka.graph.kernels.threads import balanced_cuts, over_ranges
from talka.graph.mutation import Wishes
from talka.graph.part import Part
from talka.graph.vertex_program import VertexProgram

Mask = NDArray[np.bool_]


class Inbox(NamedTuple):
    """Messages of own vertices: those of place p are `messages[offsets[p]:offsets[p + 1]]`."""

    offsets: NDArray[np.int64]
    messages: NDArray[Any]

    @property
    def places(self) -> NDArray[np.int64]:
        """The place of each message's receiver."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


class Step:
    """One superstep of one partition. Arrays have an entry for each own vertex, by its place."""

    def __init__(
        self,
        program: VertexProgram,
        part: Part,
        context: Context,
        columns: Mapping[str, NDArray[Any]],
        *,
        ids: Any,
        active: Mask,
        inbox: Inbox | None,
        combined: NDArray[Any] | None,
    ) -> None:
        self._program, self._part, self._context = program, part, context
        self._columns = dict(columns)
        self._inbox, self._combined = inbox, combined
        self._active = active
        self._ids = ids
        self.halted: Mask = np.zeros(part.num_own, np.bool_)
        self.totals: dict[str, list[Any]] = {name: [] for name in program.aggregates}
        self.wishes = Wishes()
        self.num_edges_walked = 0
        self._sent: list[tuple[NDArray[np.uint32], NDArray[Any]]] = []
        self._along: NDArray[Any] | None = None

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
    def part(self) -> Part:
        """The partition as it lies in memory, for kernels."""
        return self._part

    @property
    def vertices(self) -> NDArray[np.uint32]:
        """Numbers of own vertices, ascending."""
        return self._part.own

    @property
    def ids(self) -> Any:
        """What own vertices are called outside: a numpy array of numbers, or strings in Arrow."""
        return self._ids

    @property
    def out_degrees(self) -> NDArray[np.uint32]:
        return self._part.out_degrees

    @property
    def in_degrees(self) -> NDArray[np.uint32]:
        return self._part.in_degrees

    @property
    def edges(self) -> Csr:
        """Out-edges: rows are places, columns are slots; `numbers_of_slots` says who they are."""
        return self._part.out

    @property
    def numbers_of_slots(self) -> NDArray[np.uint32]:
        return self._part.target_numbers

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
        if self._inbox is not None:
            return np.diff(self._inbox.offsets) > 0
        return np.asarray(self.combined != self.nothing, np.bool_)

    @property
    def nothing(self) -> Any:
        """What `combined` is for a vertex without messages."""
        return nothing_for(self._program.combine, np.dtype(self._program.message_type))

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
        to = np.ascontiguousarray(numbers, np.uint32).reshape(-1)
        kind = np.dtype(self._program.message_type)
        said = np.asarray(messages).astype(kind, copy=False)
        said = np.broadcast_to(said, to.shape)
        if len(to) and int(to.max()) >= self.num_vertices:
            allowed = f"below the number of vertices, {self.num_vertices}"
            raise InvalidValueError("a vertex number", int(to.max()), allowed)
        self._sent.append((to, np.ascontiguousarray(said)))

    def send_along_edges(self, messages: ArrayLike, *, where: Mask | None = None) -> None:
        """The message of each own vertex to all of its out-neighbours; of those `where` is true."""
        kind = np.dtype(self._program.message_type)
        said = np.ascontiguousarray(
            np.broadcast_to(np.asarray(messages), self.vertices.shape), kind
        )
        if self._program.combine is None or (where is not None and _is_rare(where, self.edges)):
            self._send_each(said, where)
            return
        if where is not None:
            said = np.where(where, said, self.nothing)
        self._gather(said)

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

    def along(self) -> NDArray[Any] | None:
        """What was combined along edges, for each target slot."""
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
        out = self.edges
        degrees = out.degrees()
        if where is None:
            numbers, messages = self.numbers_of_slots[out.columns], np.repeat(said, degrees)
        else:
            rows = np.flatnonzero(where)
            entries = _entries_of(out.offsets, rows, degrees[rows])
            numbers = self.numbers_of_slots[out.columns[entries]]
            messages = np.repeat(said[rows], degrees[rows])
        self.num_edges_walked += len(numbers)
        self._sent.append((numbers, messages))

    def _gather(self, said: NDArray[Any]) -> None:
        assert self._program.combine is not None
        into = self._part.into
        combined = np.empty(into.num_rows, said.dtype)
        cuts = balanced_cuts(into.offsets, self.num_threads)
        kernel = GATHERS[self._program.combine]
        nothing = said.dtype.type(self.nothing)
        over_ranges(kernel, cuts, into.offsets, into.columns, said, nothing, combined)
        self.num_edges_walked += into.num_entries
        if self._along is None:
            self._along = combined
        else:
            numbers = self.numbers_of_slots
            some = np.flatnonzero(combined != nothing)
            self._sent.append((numbers[some], combined[some]))


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
