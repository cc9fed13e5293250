"""Interface of a general program to its partition during one superstep: values in, messages out."""

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
from talka.graph.programs.traits import ProgramTraits
from talka.graph.supersteps.mutation import MutationRequests
from talka.graph.supersteps.protocol import Context
from talka.renaming import renamed_attribute

Mask = NDArray[np.bool_]


class Inbox(NamedTuple):
    """All messages to own vertices: those to place p are `messages[offsets[p]:offsets[p + 1]]`."""

    offsets: NDArray[np.int64]
    messages: NDArray[Any]

    @property
    def places(self) -> NDArray[np.int64]:
        """Place of the receiver of each message."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


class EdgeMessages(NamedTuple):
    """Combined messages along edges, with an entry per target slot."""

    combined: NDArray[Any]
    is_sent: Mask
    """True where there is a message. `combined` alone does not show it: a sum may be 0."""


class Step:
    """One superstep of one partition, as `VertexProgram.compute` sees it.

    Arrays have an entry per own vertex, by place. Degrees and vertex numbers are signed (int64), so
    that differences may be negative.
    """

    def __init__(
        self,
        program: ProgramTraits,
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
        self.requests = MutationRequests()
        self.num_edges_walked = 0
        self._sent: list[tuple[NDArray[np.uint32], NDArray[Any]]] = []
        self._edge_messages: EdgeMessages | None = None

    # Input of `compute`.

    @property
    def superstep(self) -> int:
        """Number of the superstep, from 0 on."""
        return self._context.superstep

    @property
    def num_vertices(self) -> int:
        """Number of vertices in the whole graph."""
        return self._context.num_vertices

    @property
    def aggregates(self) -> Mapping[str, Any]:
        """Aggregates of the previous superstep over all partitions, and the result of `master`."""
        return self._context.aggregates

    @property
    def partition(self) -> Partition:
        """The partition with its arrays, for use in kernels."""
        return self._partition

    @cached_property
    def vertices(self) -> NDArray[np.int64]:
        """Numbers of own vertices, ascending."""
        return self._partition.own.astype(np.int64)

    @property
    def ids(self) -> Any:
        """Ids of own vertices, as the user knows them: numbers in numpy or strings in Arrow."""
        return self._ids

    @cached_property
    def out_degrees(self) -> NDArray[np.int64]:
        """Number of out-edges of each own vertex."""
        return self._partition.out_degrees.astype(np.int64)

    @cached_property
    def in_degrees(self) -> NDArray[np.int64]:
        """Number of in-edges of each own vertex."""
        return self._partition.in_degrees.astype(np.int64)

    @property
    def edges(self) -> Csr:
        """Out-edges: rows are places, columns are target slots (see `numbers_of_slots`)."""
        return self._partition.out

    @cached_property
    def numbers_of_slots(self) -> NDArray[np.int64]:
        """Vertex number of each target slot."""
        return self._partition.target_numbers.astype(np.int64)

    @property
    def active(self) -> Mask:
        """True for vertices that have not voted to halt or have received a message."""
        return self._active

    @property
    def inbox(self) -> Inbox:
        """All messages; only for programs without `combine`."""
        if self._inbox is None:
            allowed = "None to read `step.inbox` (or read `step.combined`)"
            raise InvalidValueError("combine", self._program.combine, allowed)
        return self._inbox

    @property
    def combined(self) -> NDArray[Any]:
        """Combined message of each own vertex; only for programs with `combine`.

        It is `identity` without a message; `got_message` shows which vertices received one.
        """
        if self._combined is None:
            allowed = "sum, min or max to read `step.combined` (or read `step.inbox`)"
            raise InvalidValueError("combine", None, allowed)
        return self._combined

    @property
    def got_message(self) -> Mask:
        """True for vertices that received a message, even if `combined` equals `identity`."""
        return self._got_message

    @property
    def identity(self) -> Any:
        """The value of `combined` for a vertex without messages: the identity of `combine`."""
        return identity_for(self._program.combine, np.dtype(self._program.message_type))

    nothing = renamed_attribute("nothing", "identity")

    @property
    def num_threads(self) -> int:
        """Number of threads that kernels called in `compute` may use."""
        return self._context.num_threads

    def __getitem__(self, column: str) -> NDArray[Any]:
        """Return a column of values. Columns are immutable: assign a new one."""
        if column not in self._columns:
            raise UnknownNameError("column", column, tuple(self._columns))
        return self._columns[column]

    def __setitem__(self, column: str, values: ArrayLike) -> None:
        """Replace a column. A single value is repeated for all own vertices."""
        current = self[column]
        self._columns[column] = np.ascontiguousarray(
            np.broadcast_to(np.asarray(values), current.shape), current.dtype
        )

    # Output of `compute`.

    def send(self, numbers: ArrayLike, messages: ArrayLike) -> None:
        """Send messages to any vertices, by vertex number: `messages[i]` to `numbers[i]`."""
        receivers = np.asarray(numbers).reshape(-1)
        if len(receivers):
            extreme = min(int(receivers.min()), 0) or int(receivers.max())
            if not 0 <= extreme < self.num_vertices:
                allowed = f"at least 0 and below the number of vertices, {self.num_vertices}"
                raise InvalidValueError("a vertex number", extreme, allowed)
        receivers = np.ascontiguousarray(receivers, np.uint32)
        kind = np.dtype(self._program.message_type)
        typed = np.asarray(messages).astype(kind, copy=False)
        typed = np.broadcast_to(typed, receivers.shape)
        self._sent.append((receivers, np.ascontiguousarray(typed)))

    def send_along_edges(self, messages: ArrayLike, *, where: Mask | None = None) -> None:
        """Send the message of each own vertex to its out-neighbours.

        With the mask `where`, only vertices for which it is true send.
        """
        kind = np.dtype(self._program.message_type)
        typed = np.ascontiguousarray(
            np.broadcast_to(np.asarray(messages), self._partition.own.shape), kind
        )
        if self._program.combine is None or (where is not None and _is_rare(where, self.edges)):
            self._send_each(typed, where)
            return
        self._gather(typed, where)

    def aggregate(self, name: str, value: Any) -> None:
        """Contribute to an aggregate; the total is in `aggregates` in the next superstep."""
        if name not in self.totals:
            raise UnknownNameError("aggregate", name, tuple(self.totals))
        self.totals[name].append(value.item() if isinstance(value, np.generic) else value)

    def vote_to_halt(self, where: Mask | None = None) -> None:
        """Deactivate own vertices, or only those in the mask `where`, until a message arrives."""
        self.halted = self.halted | (True if where is None else where)

    def add_vertices(self, ids: Any) -> None:
        """Request new vertices, which the graph has from the next superstep on."""
        self.requests.add("add_vertex", ids, ids, self._program)

    def remove_vertices(self, ids: Any) -> None:
        """Request the removal of vertices and of all their edges."""
        self.requests.add("remove_vertex", ids, ids, self._program)

    def add_edges(self, sources: Any, targets: Any, weights: ArrayLike | None = None) -> None:
        """Request new edges. Ends that do not exist become new vertices."""
        self.requests.add("add_edge", sources, targets, self._program, weights)

    def remove_edges(self, sources: Any, targets: Any) -> None:
        """Request the removal of all edges from `sources[i]` to `targets[i]`."""
        self.requests.add("remove_edge", sources, targets, self._program)

    # Results, read by the task that ran `compute`.

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """Columns of values, by name."""
        return self._columns

    def edge_messages(self) -> EdgeMessages | None:
        """Return the messages that were gathered along edges, if any."""
        return self._edge_messages

    def addressed_messages(self) -> tuple[NDArray[np.uint32], NDArray[Any]]:
        """Return receivers, by number, and their messages, combined if there is `combine`."""
        kind = np.dtype(self._program.message_type)
        if not self._sent:
            return np.empty(0, np.uint32), np.empty(0, kind)
        numbers = np.concatenate([receivers for receivers, _ in self._sent])
        messages = np.concatenate([sent for _, sent in self._sent])
        if self._program.combine is None:
            return numbers, messages
        return combine_by_number(self._program.combine, numbers, messages)

    def _send_each(self, own_messages: NDArray[Any], where: Mask | None) -> None:
        """Send one addressed message per edge: cheap if few vertices send."""
        out, slots = self.edges, self._partition.target_numbers
        degrees = out.degrees()
        if where is None:
            numbers, messages = slots[out.columns], np.repeat(own_messages, degrees)
        else:
            rows = np.flatnonzero(where)
            entries = _entries_of(out.offsets, rows, degrees[rows])
            numbers = slots[out.columns[entries]]
            messages = np.repeat(own_messages[rows], degrees[rows])
        self.num_edges_walked += len(numbers)
        self._sent.append((numbers, messages))

    def _gather(self, own_messages: NDArray[Any], where: Mask | None) -> None:
        """Combine messages for all target slots at once: each slot reads from its sources."""
        assert self._program.combine is not None
        into = self._partition.into
        combined = np.empty(into.num_rows, own_messages.dtype)
        cuts = balanced_cuts(into.offsets, self.num_threads)
        kernel = GATHERS[self._program.combine]
        identity = own_messages.dtype.type(self.identity)
        if where is not None:
            own_messages = np.where(where, own_messages, identity)
        over_ranges(kernel, cuts, into.offsets, into.columns, own_messages, identity, combined)
        if where is None:
            is_sent = into.offsets[1:] != into.offsets[:-1]
        else:
            is_sent = np.empty(into.num_rows, np.bool_)
            sends = np.ascontiguousarray(where, np.bool_)
            rows = (into.offsets, into.columns, sends, combined, identity, is_sent)
            over_ranges(find_sent, cuts, *rows)
        self.num_edges_walked += into.num_entries
        if self._edge_messages is None:
            self._edge_messages = EdgeMessages(combined, is_sent)
        else:
            self._sent.append((self._partition.target_numbers[is_sent], combined[is_sent]))


def _is_rare(where: Mask, edges: Csr) -> bool:
    """Return True if one message per edge is cheaper: sorting one costs about as much as
    gathering ten.
    """
    return bool(10 * edges.degrees()[where].sum() < edges.num_entries)


def _entries_of(
    offsets: NDArray[Any], rows: NDArray[np.int64], degrees: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the indices of all entries of these rows, row by row."""
    starts = np.repeat(offsets[rows].astype(np.int64), degrees)
    before = np.repeat(np.cumsum(degrees) - degrees, degrees)
    return starts + np.arange(len(starts)) - before
