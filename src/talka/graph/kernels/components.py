"""Who is connected with whom: a forest of parents in which every tree is a component.

Afforest (Sutton, Ben-Nun and Barak, IPDPS 2018): unite every vertex with its first two neighbours,
which are hubs, since numbers descend by degree; then nearly all vertices of the largest component
are in one tree, and only the vertices outside of it have to look at all their edges.

A parent is never greater than its child: trees are united by hanging the greater root under the
smaller one, and the root of a finished tree is the smallest number in it, whatever threads did
first. Threads share the forest; `compare_and_swap` sees to it that a root gets one parent only.
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
"""In a kernel, `compare_and_swap(array, index, expected, replacement)`: what stood at the index.

If that is `expected`, `replacement` stands there now, in one step that no other thread can come
between. `array` is of uint32 and in one piece; the caller has to know that `index` is inside of it.
"""


_NUM_FIRST = 2  # neighbours taken from each vertex before the largest tree is looked for
_NUM_SAMPLES = 1024

Parents = NDArray[np.uint32]


def components(out: Csr, into: Csr, num_threads: int) -> NDArray[np.uint32]:
    """The smallest number in the weakly connected component of each vertex.

    `into is out` says that the graph is undirected.
    """
    parents = forest(out.num_rows)
    even = np.linspace(0, out.num_rows, num_threads + 1).astype(np.int64)
    for rank in range(_NUM_FIRST):
        over_ranges(_unite_nth, even, out.offsets, out.columns, np.uint32(rank), parents)
        over_ranges(_flatten, even, parents)
    largest = _most_seen(parents)
    cuts = balanced_cuts(out.offsets, num_threads)
    over_ranges(_unite_outside, cuts, out.offsets, out.columns, _NUM_FIRST, largest, parents)
    if into is not out:  # an edge from the largest tree to a vertex outside is known only there
        over_ranges(_unite_outside, cuts, into.offsets, into.columns, 0, largest, parents)
    over_ranges(_flatten, even, parents)
    return parents


def forest(num_vertices: int) -> Parents:
    """Every vertex a tree of its own."""
    return np.arange(num_vertices, dtype=np.uint32)


def unite(parents: Parents, sources: NDArray[np.uint32], targets: NDArray[np.uint32]) -> None:
    """Unite the trees of both ends of each pair. `flatten` when all are united."""
    _unite_pairs(parents, sources, targets)


def unite_rows(parents: Parents, out: Csr, places: NDArray[np.uint32], num_threads: int) -> None:
    """Unite the tree of `places[row]` with that of every column of the row.

    For a partition: columns are target slots, and `places` says where its source slots are among
    them, or behind them.
    """
    cuts = balanced_cuts(out.offsets, num_threads)
    over_ranges(_unite_entries, cuts, out.offsets, out.columns, places, parents)


def flatten(parents: Parents) -> None:
    """Make every parent a root: `parents[v]` is then the smallest place in the tree of v."""
    _flatten(0, len(parents), parents)


def smallest_in_trees(parents: Parents, numbers: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The smallest of `numbers` in the tree of each place; the forest must be flat.

    For a partition, whose places do not ascend with the numbers of its vertices.
    """
    smallest: NDArray[np.uint32] = _smallest_in_trees(parents, numbers)
    return smallest


def _most_seen(parents: Parents) -> np.uint32:
    """The root that most of a fixed sample of vertices have: nearly always the largest tree's."""
    if not len(parents):
        return np.uint32(0)
    sample = np.linspace(0, len(parents) - 1, _NUM_SAMPLES).astype(np.int64)
    roots, counts = np.unique(parents[sample], return_counts=True)
    return np.uint32(roots[counts.argmax()])


@compiled
def _unite_two(parents: Any, left: Any, right: Any) -> None:
    a, b = parents[left], parents[right]
    while a != b:
        high, low = max(a, b), min(a, b)
        stood = compare_and_swap(parents, np.uint64(high), high, low)
        if stood == high:  # it was a root, and is a child of `low` now
            return
        a, b = parents[stood], parents[low]


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
    """Edges of vertices outside of the largest tree.

    A vertex that another thread hangs under `largest` meanwhile may be left out: each of its edges
    is either inside of that tree by then, or also seen from the other end.
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
