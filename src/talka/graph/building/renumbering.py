"""Map ids of any type to slots: integers small enough to index arrays of counts.

Ids that are close together are their own slots, `id - base`. Scattered ids are looked up in hash
tables, one per thread and its share of the edges, and strings in dictionaries of Arrow. Slots are
in the order of ids, so ties are broken by id wherever slots are sorted.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from talka.errors import GraphError
from talka.graph.kernels.id_table import empty_table, number_ids, replace_numbers
from talka.graph.kernels.threads import over_ranges
from talka.graph.reading.base import Edges

_MAX_SLOTS_PER_EDGE = 2  # above, a table is smaller than an array with one entry per slot
_FEW_SLOTS = 1 << 16
MAX_VERTICES = 2**32 - 1


class Slots(NamedTuple):
    """Edges between slots; the slot of an end is `ends[i] - base`."""

    ends: tuple[NDArray[Any], NDArray[Any]]
    """Sources and targets, unsigned and read-only: kernels are compiled for that type only."""
    base: np.uint64
    num_slots: int
    known: NDArray[np.bool_] | None
    """True for slots that exist even without an edge; None: all do."""
    ids: Any
    """Id of each slot, ascending; None: the id is `base` plus the slot."""
    id_type: Any
    """numpy type of integer ids."""

    def ids_at(self, slots: NDArray[np.uint32]) -> Any:
        """Return the ids of ascending slots."""
        if self.ids is not None:
            return self.ids  # all slots exist
        return (slots.astype(np.uint64) + self.base).view(self.id_type)


def renumber(edges: Edges, num_threads: int) -> Slots:
    """Return the edges between slots instead of ids."""
    if edges.has_strings:
        return _from_strings(edges)
    arrays = [edges.sources, edges.targets]
    if edges.vertices is not None:
        arrays.append(edges.vertices)
    arrays = [array for array in arrays if len(array)]
    if not arrays:
        ends = (unsigned(edges.sources), unsigned(edges.targets))
        return Slots(ends, np.uint64(0), 0, None, None, id_type_of(edges.sources))
    lowest = min(int(array.min()) for array in arrays)
    span = max(int(array.max()) for array in arrays) - lowest + 1
    if span > max(_MAX_SLOTS_PER_EDGE * len(edges.sources), _FEW_SLOTS):
        return _from_tables(edges, num_threads)
    return _from_close_ids(edges, lowest, span)


def unsigned(ids: NDArray[Any]) -> NDArray[Any]:
    """Return the same bits as unsigned integers, read-only."""
    view = ids.view(np.uint32 if ids.itemsize == 4 else np.uint64)
    view.flags.writeable = False
    return view


def id_type_of(ids: NDArray[Any]) -> Any:
    return np.uint64 if ids.dtype == np.uint64 else np.int64


def _from_close_ids(edges: Edges, lowest: int, span: int) -> Slots:
    base = np.uint64(lowest % 2**64)
    known = np.zeros(span, np.bool_)
    if edges.vertices is not None:
        known[edges.vertices.astype(id_type_of(edges.sources)).view(np.uint64) - base] = True
    ends = (unsigned(edges.sources), unsigned(edges.targets))
    return Slots(ends, base, span, known, None, id_type_of(edges.sources))


def _from_tables(edges: Edges, num_threads: int) -> Slots:
    """Number ids per thread, each with its own table; then replace these numbers by slots."""
    id_type = id_type_of(edges.sources)
    ends = [_widened(edges.sources, id_type), _widened(edges.targets, id_type)]
    slots = [np.empty(len(ends[0]), np.uint32) for _ in ends]
    cuts = np.linspace(0, len(ends[0]), num_threads + 1).astype(np.int64)

    def share_of(arrays: list[NDArray[Any]], thread: int) -> list[NDArray[Any]]:
        return [array[cuts[thread] : cuts[thread + 1]] for array in arrays]

    def number(thread: int, _: int) -> Any:
        table = empty_table()
        for ids, numbers in zip(share_of(ends, thread), share_of(slots, thread), strict=True):
            table = number_ids(ids, numbers, table)
        return table.known[: table.num_known[0]].view(id_type)

    threads = np.arange(num_threads + 1)
    ids_by_thread = over_ranges(number, threads)
    more = [] if edges.vertices is None else [edges.vertices.astype(id_type)]
    ascending = np.unique(np.concatenate([*ids_by_thread, *more]))
    check_number_of_vertices(len(ascending))

    def replace_by_slots(thread: int, _: int) -> None:
        slots_of_numbers = np.searchsorted(ascending, ids_by_thread[thread]).astype(np.uint32)
        for numbers in share_of(slots, thread):
            replace_numbers(numbers, slots_of_numbers)

    over_ranges(replace_by_slots, threads)
    both = (unsigned(slots[0]), unsigned(slots[1]))
    return Slots(both, np.uint64(0), len(ascending), None, ascending, id_type)


def _widened(ids: NDArray[Any], id_type: Any) -> NDArray[np.uint64]:
    return unsigned(ids.astype(id_type, copy=False))


def _from_strings(edges: Edges) -> Slots:
    columns = [edges.sources, edges.targets]
    if edges.vertices is not None:
        columns.append(edges.vertices)
    chunks = [chunk for column in columns for chunk in _chunks(column)]
    encoded = pa.chunked_array(chunks, pa.large_string()).dictionary_encode().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # no chunks at all
        encoded = pa.DictionaryArray.from_arrays(
            pa.array([], pa.int32()), pa.array([], pa.large_string())
        )
    order = pc.sort_indices(encoded.dictionary)
    slot_of = np.empty(len(order), np.uint32)
    slot_of[order.to_numpy()] = np.arange(len(order), dtype=np.uint32)
    slots = slot_of[encoded.indices.to_numpy()]
    check_number_of_vertices(len(order))
    num_edges = len(edges.sources)
    ends = (unsigned(slots[:num_edges]), unsigned(slots[num_edges : 2 * num_edges]))
    return Slots(ends, np.uint64(0), len(order), None, encoded.dictionary.take(order), None)


def _chunks(column: Any) -> Any:
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return [chunk.cast(pa.large_string()) for chunk in chunks]


def check_number_of_vertices(count: int) -> None:
    if count > MAX_VERTICES:
        problem = f"{count:,} vertices (numbers have 32 bits)"
        raise GraphError(problem, f"At most {MAX_VERTICES:,} are possible; cut the graph.")
