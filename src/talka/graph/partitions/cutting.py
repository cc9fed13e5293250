"""Cut a graph into partitions that can be on different machines.

owners (one of `WAYS`) -> edges by partition -> mirrors and slots -> rows by partition -> routes

"ranges"      contiguous vertex numbers with equally many edges; keeps the locality of numbers.
              Numbers descend by degree: the first ranges have few vertices, all of them hubs.
"hash"        pseudo-random owners; balances both edges and vertices
"vertex_cut"  owners as "hash", but an edge is stored with its end of lower degree: hubs are cut,
              and each partition keeps one mirror of a hub instead of one of every neighbour of a
              hub (degree-based hashing; Xie et al., NeurIPS 2014)
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.errors import InvalidValueError, UnknownNameError
from talka.graph.csr import Csr
from talka.graph.kernels.cutting import count_dealt, deal, lay_out, mirrors_of, rows_of
from talka.graph.kernels.offsets import row_offsets
from talka.graph.kernels.threads import balanced_cuts, over_ranges
from talka.graph.partitions.partition import Numbers, Offsets, Partition
from talka.machine import num_cores

Owners = NDArray[np.uint16]

MAX_PARTITIONS = 2**16
_VALUE_BYTES = 8  # per value, as `CutReport` assumes


@dataclass(frozen=True, kw_only=True, slots=True)
class CutReport:
    """Quality of a cut, known before a program runs."""

    balance: float
    """Edges of the largest partition divided by the mean; 1 is best."""
    vertex_balance: float
    """Vertices of the largest partition divided by the mean; 1 is best."""
    cut_edges: float
    """Share of the edges whose ends have different owners."""
    num_mirrors: int
    """Number of mirrors: values sent in a superstep in which every vertex sends messages."""
    replication: float
    """Mean number of partitions that hold a vertex or a mirror of it; 1 is best."""

    @property
    def superstep_bytes(self) -> int:
        """Bytes sent in a superstep in which every vertex sends messages, 8 bytes per value."""
        return _VALUE_BYTES * self.num_mirrors


class Partitioned(NamedTuple):
    """A graph that was cut into partitions."""

    partitions: tuple[Partition, ...]
    owners: Owners
    """Index of the partition that owns each vertex."""
    report: CutReport


class Way(NamedTuple):
    """A way to cut a graph."""

    owners: Callable[[Csr, int], Owners]
    """Assigns vertices to partitions, given the rows by source and the number of partitions."""
    cut_vertices: bool = False
    """True if an edge is stored with its end of lower degree, not with its source."""


def owners_by_range(out: Csr, num_partitions: int) -> Owners:
    """Assign ranges of vertex numbers with about equally many edges."""
    sizes = np.diff(balanced_cuts(out.offsets, num_partitions))
    return np.repeat(np.arange(num_partitions, dtype=np.uint16), sizes)


def owners_by_hash(out: Csr, num_partitions: int) -> Owners:
    """Assign owners by two rounds of multiply and shift, in which every bit of a number counts."""
    mixed = np.arange(out.num_rows, dtype=np.uint32)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        mixed ^= mixed >> np.uint32(shift)
        mixed *= np.uint32(factor)
    mixed ^= mixed >> np.uint32(16)
    return ((mixed.astype(np.uint64) * np.uint64(num_partitions)) >> np.uint64(32)).astype(
        np.uint16
    )


WAYS: dict[str, Way] = {
    "ranges": Way(owners_by_range),
    "hash": Way(owners_by_hash),
    "vertex_cut": Way(owners_by_hash, cut_vertices=True),
}


def cut(
    out: Csr,
    into: Csr,
    num_partitions: int,
    how: str = "ranges",
    *,
    num_threads: int | None = None,
) -> Partitioned:
    """Cut a graph whose rows are `out` (by source) and `into` (by target).

    An undirected graph has each edge in both directions, and `into is out`. A single partition
    shares the arrays of the graph. While it runs, takes 8 bytes per edge (16 with weights) in
    addition to the partitions.
    """
    if not 1 <= num_partitions <= MAX_PARTITIONS:
        allowed = f"a whole number from 1 to {MAX_PARTITIONS}"
        raise InvalidValueError("num_partitions", num_partitions, allowed)
    if how not in WAYS:
        raise UnknownNameError("way to cut a graph", how, tuple(WAYS))
    if num_partitions == 1:
        return _whole(out, into)
    way = WAYS[how]
    owners = way.owners(out, num_partitions)
    counts, num_apart = count_dealt(
        out.offsets, out.columns, owners, way.cut_vertices, num_partitions
    )
    cutting = _Cutting(out, into, owners, counts, cut_vertices=way.cut_vertices)
    threads = np.linspace(0, num_partitions, (num_threads or num_cores()) + 1).astype(np.int64)
    rows = [
        partition
        for partitions in over_ranges(cutting.lay_out, threads)
        for partition in partitions
    ]
    partitions = tuple(cutting.with_routes(rows))
    return Partitioned(
        partitions, owners, _report(partitions, out.num_rows, counts, int(num_apart))
    )


def _whole(out: Csr, into: Csr) -> Partitioned:
    no_vertices, no_offsets = np.empty(0, np.uint32), np.zeros(2, np.int64)
    partition = Partition(
        index=0,
        num_partitions=1,
        own=np.arange(out.num_rows, dtype=np.uint32),
        source_mirrors=no_vertices,
        source_mirror_offsets=no_offsets,
        target_mirrors=no_vertices,
        target_mirror_offsets=no_offsets,
        out=out,
        into=into,
        out_degrees=out.degrees().astype(np.uint32),
        in_degrees=into.degrees().astype(np.uint32),
        send_places=no_vertices,
        send_place_offsets=no_offsets,
        receive_places=no_vertices,
        receive_place_offsets=no_offsets,
    )
    owners = np.zeros(out.num_rows, np.uint16)
    return Partitioned(
        (partition,), owners, _report((partition,), out.num_rows, np.array([out.num_entries]), 0)
    )


class _Rows(NamedTuple):
    """A partition without routes, which depend on the mirrors of the others."""

    source_mirrors: Numbers
    source_mirror_offsets: Offsets
    target_mirrors: Numbers
    target_mirror_offsets: Offsets
    out: Csr
    into: Csr


class _Cutting:
    """Edges grouped by partition, and the owner and place of each vertex."""

    def __init__(
        self, out: Csr, into: Csr, owners: Owners, counts: NDArray[np.int64], *, cut_vertices: bool
    ) -> None:
        self._owners, self._num_partitions = owners, len(counts)
        self._starts = np.concatenate([[0], np.cumsum(counts)])
        self._degrees = [side.degrees().astype(np.uint32) for side in (out, into)]
        by_owner = np.argsort(owners, kind="stable").astype(np.uint32)
        ends = np.cumsum(np.bincount(owners, minlength=self._num_partitions))
        self._own = np.split(by_owner, ends[:-1])
        self._places = np.empty(
            len(owners), np.uint32
        )  # of each vertex among the vertices of its owner
        for own in self._own:
            self._places[own] = np.arange(len(own), dtype=np.uint32)

        self._has_weights = out.weights is not None
        weights = np.empty(0) if out.weights is None else out.weights
        self._sources = np.empty(out.num_entries, np.uint32)
        self._targets = np.empty(out.num_entries, np.uint32)
        self._weights = np.empty(len(weights))
        free = self._starts[:-1].astype(np.uint64)
        dealt = (self._sources, self._targets, self._weights)
        deal(out.offsets, out.columns, weights, owners, cut_vertices, free, *dealt)

    def lay_out(self, start: int, stop: int) -> list[_Rows]:
        """Compute mirrors, slots and rows of the partitions from `start` to `stop`."""
        num_vertices = len(self._owners)
        is_seen = np.zeros(num_vertices, np.uint8)
        # Slots of own vertices are their places in both arrays. Slots of mirrors are overwritten
        # by each partition.
        slots = np.empty((2, num_vertices), np.uint32)
        return [self._lay_out_one(index, is_seen, *slots) for index in range(start, stop)]

    def _lay_out_one(
        self, index: int, is_seen: NDArray[np.uint8], source_slots: Numbers, target_slots: Numbers
    ) -> _Rows:
        edges = slice(*self._starts[index : index + 2])
        sources, targets = self._sources[edges], self._targets[edges]
        weights = self._weights[edges] if self._has_weights else self._weights
        own = self._own[index]
        mirrors = []
        for ends, slots in ((sources, source_slots), (targets, target_slots)):
            side_mirrors = self._by_owner(mirrors_of(ends, self._owners, index, is_seen))
            num_slots = len(own) + len(side_mirrors)
            slots[own] = np.arange(len(own), dtype=np.uint32)
            slots[side_mirrors] = np.arange(len(own), num_slots, dtype=np.uint32)
            mirrors.append(side_mirrors)
        num_rows, num_columns = (len(own) + len(side_mirrors) for side_mirrors in mirrors)
        row_counts, row_starts, column_counts = rows_of(
            sources, targets, source_slots, target_slots, num_rows, num_columns
        )
        out, into = (self._empty(counts) for counts in (row_counts, column_counts))
        filled = [np.empty(0) if side.weights is None else side.weights for side in (out, into)]
        lay_out(
            row_starts,
            targets,
            weights,
            target_slots,
            *(out.offsets, out.columns, filled[0]),
            *(into.offsets, into.columns, filled[1]),
        )
        offsets = [self._owner_offsets(side_mirrors) for side_mirrors in mirrors]
        return _Rows(mirrors[0], offsets[0], mirrors[1], offsets[1], out, into)

    def _empty(self, counts: NDArray[np.uint32]) -> Csr:
        offsets = row_offsets(counts)
        num_entries = int(offsets[-1])
        weights = np.empty(num_entries) if self._has_weights else None
        return Csr(offsets, np.empty(num_entries, np.uint32), weights)

    def _by_owner(self, vertices: Numbers) -> Numbers:
        return vertices[np.lexsort((vertices, self._owners[vertices]))]

    def _owner_offsets(self, mirrors: Numbers) -> Offsets:
        counts = np.bincount(self._owners[mirrors], minlength=self._num_partitions)
        return np.concatenate([[0], np.cumsum(counts)])

    def with_routes(self, rows: list[_Rows]) -> list[Partition]:
        """Return complete partitions, with the places of own vertices that others mirror."""
        partitions = []
        for index, (own, own_rows) in enumerate(zip(self._own, rows, strict=True)):
            sent = [other.source_mirrors[_of(other.source_mirror_offsets, index)] for other in rows]
            received = [
                other.target_mirrors[_of(other.target_mirror_offsets, index)] for other in rows
            ]
            partition = Partition(
                index=index,
                num_partitions=self._num_partitions,
                own=own,
                out_degrees=self._degrees[0][own],
                in_degrees=self._degrees[1][own],
                send_places=self._places[np.concatenate(sent)],
                send_place_offsets=np.cumsum([0, *map(len, sent)]),
                receive_places=self._places[np.concatenate(received)],
                receive_place_offsets=np.cumsum([0, *map(len, received)]),
                **own_rows._asdict(),
            )
            partitions.append(partition)
        return partitions


def _of(offsets: Offsets, index: int) -> slice:
    return slice(int(offsets[index]), int(offsets[index + 1]))


def _report(
    partitions: tuple[Partition, ...], num_vertices: int, edges: NDArray[np.int64], num_apart: int
) -> CutReport:
    num_copies = sum(
        len(np.union1d(partition.source_mirrors, partition.target_mirrors))
        if len(partition.source_mirrors)
        else len(partition.target_mirrors)
        for partition in partitions
    )
    return CutReport(
        balance=_largest_over_mean(edges),
        vertex_balance=_largest_over_mean(
            np.array([partition.num_own for partition in partitions])
        ),
        cut_edges=num_apart / max(int(edges.sum()), 1),
        num_mirrors=sum(
            len(partition.source_mirrors) + len(partition.target_mirrors)
            for partition in partitions
        ),
        replication=1 + num_copies / max(num_vertices, 1),
    )


def _largest_over_mean(shares: NDArray[np.int64]) -> float:
    return float(shares.max() / shares.mean()) if shares.any() else 1.0
