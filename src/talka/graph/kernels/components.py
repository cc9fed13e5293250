"""Connected components: a forest of parents in which every tree becomes a component.

Afforest (Sutton, Ben-Nun and Barak, IPDPS 2018): unite every vertex with its first two neighbours,
which are hubs, since small numbers have the greatest degrees. Nearly all vertices of the largest
component are then in one tree, and only vertices outside of it have to read all of their edges.

A parent is never greater than its child: to unite two trees, the greater root becomes a child of
the smaller one. The root of a finished tree is therefore its smallest number, whatever the order of
threads. They share the forest without locks; `compare_and_swap` gives each root one parent only.
"""

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic
from numpy.typing import NDArray

from talka.compiled import compiled
from talka.graph.csr import Csr
from talka.graph.kernels.threads import balanced_cuts, over_ranges


def _compare_and_swap(
    typing_context: Any, array: Any, index: Any, expected: Any, replacement: Any
) -> Any:
    wanted = types.Array(types.uint32, 1, "C")
    if array != wanted:
        raise TypingError(f"compare_and_swap works on {wanted}, not on {array}")
    signature = types.uint32(wanted, types.uint64, types.uint32, types.uint32)

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        values, at, old, new = arguments
        proxy: Any = cgutils.create_struct_proxy(wanted)  # type: ignore[no-untyped-call]
        place = builder.gep(proxy(context, builder, values).data, [at])
        swapped = builder.cmpxchg(place, old, new, "monotonic", "monotonic")
        return builder.extract_value(swapped, 0)

    return signature, generate


compare_and_swap: Any = intrinsic(_compare_and_swap)
"""Atomic operation for kernels: `compare_and_swap(array, index, expected, replacement)`.

Returns the value at the index and, if that is `expected`, stores `replacement` there, in one atomic
step. `array` is a contiguous uint32 array; the index is not checked.
"""


_NUM_FIRST = 2  # neighbours that each vertex is united with before the largest tree is determined
_NUM_SAMPLES = 1024

Parents = NDArray[np.uint32]


def components(out: Csr, into: Csr, num_threads: int) -> NDArray[np.uint32]:
    """Return the smallest number in the weakly connected component of each vertex.

    For an undirected graph `into is out`.
    """
    parents = forest(out.num_rows)
    even = np.linspace(0, out.num_rows, num_threads + 1).astype(np.int64)
    for rank in range(_NUM_FIRST):
        over_ranges(_unite_nth, even, out.offsets, out.columns, np.uint32(rank), parents)
        over_ranges(_flatten, even, parents)
    largest = _most_seen(parents)
    cuts = balanced_cuts(out.offsets, num_threads)
    over_ranges(_unite_outside, cuts, out.offsets, out.columns, _NUM_FIRST, largest, parents)
    if into is not out:  # edges from the largest tree to outside are skipped in `out`
        over_ranges(_unite_outside, cuts, into.offsets, into.columns, 0, largest, parents)
    over_ranges(_flatten, even, parents)
    return parents


def forest(num_vertices: int) -> Parents:
    """Return a forest in which each vertex is a tree."""
    return np.arange(num_vertices, dtype=np.uint32)


def unite(parents: Parents, sources: NDArray[np.uint32], targets: NDArray[np.uint32]) -> None:
    """Unite the trees of both ends of each pair. Call `flatten` after the last pair."""
    _unite_pairs(parents, sources, targets)


def unite_rows(parents: Parents, out: Csr, places: NDArray[np.uint32], num_threads: int) -> None:
    """Unite the tree of `places[row]` with that of every column of the row.

    For a partition: columns are target slots, and `places` maps its source slots to target slots or
    to places behind them.
    """
    cuts = balanced_cuts(out.offsets, num_threads)
    over_ranges(_unite_entries, cuts, out.offsets, out.columns, places, parents)


def flatten(parents: Parents) -> None:
    """Replace every parent by its root: `parents[v]` becomes the smallest place in v's tree."""
    _flatten(0, len(parents), parents)


def smallest_in_trees(parents: Parents, numbers: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the smallest of `numbers` in the tree of each place; the forest must be flat.

    For values that do not ascend with places, such as labels in a partition.
    """
    smallest: NDArray[np.uint32] = _smallest_in_trees(parents, numbers)
    return smallest


def _most_seen(parents: Parents) -> np.uint32:
    """Return the most frequent root in a fixed sample: nearly always that of the largest tree."""
    if not len(parents):
        return np.uint32(0)
    sample = np.linspace(0, len(parents) - 1, _NUM_SAMPLES).astype(np.int64)
    roots, counts = np.unique(parents[sample], return_counts=True)
    return np.uint32(roots[counts.argmax()])


@compiled
def _unite_two(parents: Any, left: Any, right: Any) -> None:
    """Climb both trees in turn until the paths meet or the greater end is a root to be united."""
    a, b = parents[left], parents[right]
    while a != b:
        high, low = max(a, b), min(a, b)
        parent = compare_and_swap(parents, np.uint64(high), high, low)
        if parent == high:  # `high` was a root, and is a child of `low` now
            return
        a, b = parents[parent], parents[low]


@compiled
def _unite_pairs(parents: Any, sources: Any, targets: Any) -> None:
    for pair in range(len(sources)):
        _unite_two(parents, sources[pair], targets[pair])


@compiled
def _unite_nth(start: Any, stop: Any, offsets: Any, columns: Any, rank: Any, parents: Any) -> None:
    for row in range(start, stop):
        entry = offsets[row] + rank
        if entry < offsets[row + 1]:
            _unite_two(parents, np.uint32(row), columns[entry])


@compiled
def _unite_outside(
    start: Any, stop: Any, offsets: Any, columns: Any, skipped: Any, largest: Any, parents: Any
) -> None:
    """Unite along the edges of vertices outside of the largest tree.

    A vertex that another thread moves under `largest` meanwhile may be skipped: the other end of
    each of its edges is in that tree too, or reads the edge itself.
    """
    for row in range(start, stop):
        if parents[row] == largest:
            continue
        for entry in range(offsets[row] + np.uint64(skipped), offsets[row + 1]):
            _unite_two(parents, np.uint32(row), columns[entry])


@compiled
def _unite_entries(
    start: Any, stop: Any, offsets: Any, columns: Any, places: Any, parents: Any
) -> None:
    for row in range(start, stop):
        for entry in range(offsets[row], offsets[row + 1]):
            _unite_two(parents, places[row], columns[entry])


@compiled
def _flatten(start: Any, stop: Any, parents: Any) -> None:
    for vertex in range(start, stop):
        root = parents[vertex]
        while parents[root] != root:
            root = parents[root]
        parents[vertex] = root


@compiled
def _smallest_in_trees(parents: Any, numbers: Any) -> Any:
    smallest = numbers.copy()
    for place in range(len(parents)):
        root = parents[place]
        smallest[root] = min(smallest[root], numbers[place])
    for place in range(len(parents)):
        smallest[place] = smallest[parents[place]]
    return smallest
