"""The most frequent label among neighbours: one superstep of label propagation by LDBC's rule.

Every edge gives one vote in each direction that is read; ties go to the smallest label, and a
vertex without votes keeps its label. Votes are counted in a table with an entry per label, and only
the entries that were used are cleared: linear in the edges, however long a row is.

Labels are below `num_labels`. LDBC breaks ties by original ids, so labels are the ranks of these
ids, not numbers of vertices.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from talka.compiled import compiled
from talka.graph.csr import Csr
from talka.graph.kernels.offsets import row_offsets
from talka.graph.kernels.threads import balanced_cuts, over_ranges

Labels = NDArray[np.uint32]


def most_frequent(out: Csr, into: Csr, labels: Labels, num_labels: int, num_threads: int) -> Labels:
    """Return, for each vertex, the most frequent label in its rows of `out` and `into`.

    For an undirected graph `into is out`, and rows are read once. In a directed graph two vertices
    with edges in both directions have two votes for each other.
    """
    if into is out:
        into = Csr(np.zeros_like(out.offsets), np.empty(0, np.uint32), None)
    chosen = np.empty(out.num_rows, np.uint32)
    both = row_offsets(out.degrees() + into.degrees())
    rows = (out.offsets, out.columns, into.offsets, into.columns)
    cuts = balanced_cuts(both, num_threads)
    over_ranges(_most_frequent, cuts, *rows, labels, num_labels, chosen)
    return chosen


@compiled
def _most_frequent(
    start: Any,
    stop: Any,
    out_offsets: Any,
    out_columns: Any,
    into_offsets: Any,
    into_columns: Any,
    labels: Any,
    num_labels: Any,
    chosen: Any,
) -> None:
    # Each thread has a table of votes. A vertex reads its neighbours twice: to count, keeping the
    # best label on the way, and to set the counts back to 0.
    table = np.zeros(num_labels, np.uint32)
    for row in range(start, stop):
        best, most = labels[row], np.uint32(0)
        targets = out_columns[out_offsets[row] : out_offsets[row + 1]]
        sources = into_columns[into_offsets[row] : into_offsets[row + 1]]
        for column in targets:
            best, most = _vote(table, labels[column], best, most)
        for column in sources:
            best, most = _vote(table, labels[column], best, most)
        for column in targets:
            table[labels[column]] = 0
        for column in sources:
            table[labels[column]] = 0
        chosen[row] = best


@compiled
def _vote(table: Any, label: Any, best: Any, most: Any) -> Any:
    """Count a vote, and return the best label so far and its votes. Counts never decrease."""
    count = np.uint32(table[label] + np.uint32(1))
    table[label] = count
    if count > most or (count == most and label < best):
        return label, count
    return best, most
