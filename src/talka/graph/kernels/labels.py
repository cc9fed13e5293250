"""The most frequent label around a vertex: one superstep of label propagation by LDBC's rule.

Every edge gives one vote in each of its directions that is walked; ties go to the smallest label,
and a vertex without votes keeps its own. Votes are counted in a table with a place for each label
that is cleared entry by entry: linear in the edges, however long a row is.

In one piece: `most_frequent`. Across partitions: each sums up its own edges (`count_votes`), sends
the votes for vertices of others, and joins what it has with what arrives (`most_voted`).

Labels are below a bound that the caller knows. LDBC breaks ties by original ids, so labels there
are ranks of these ids, not numbers of vertices.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.graph.csr import Csr
from talka.graph.kernels.compiled import compiled
from talka.graph.kernels.offsets import row_offsets
from talka.graph.kernels.threads import balanced_cuts, over_ranges

Labels = NDArray[np.uint32]


class Votes(NamedTuple):
    """`counts[i]` votes for `labels[i]` in `rows[i]`; ascending by row."""

    rows: NDArray[np.uint32]
    labels: Labels
    counts: NDArray[np.uint32]


def most_frequent(out: Csr, into: Csr, labels: Labels, num_labels: int, num_threads: int) -> Labels:
    """The label that most entries of both rows of a vertex have, for each vertex.

    `into is out` says that the graph is undirected: then its rows are walked once. In a directed
    graph two vertices with edges both ways have two votes for each other.
    """
    if into is out:
        into = Csr(np.zeros_like(out.offsets), np.empty(0, np.uint32), None)
    chosen = np.empty(out.num_rows, np.uint32)
    both = row_offsets(out.degrees() + into.degrees())
    rows = (out.offsets, out.columns, into.offsets, into.columns)
    cuts = balanced_cuts(both, num_threads)
    over_ranges(_most_frequent, cuts, *rows, labels, num_labels, chosen)
    return chosen


def count_votes(rows: Csr, labels: Labels, num_labels: int) -> Votes:
    """How often each label is among the entries of each row; `labels` is by column."""
    votes = Votes(*(np.empty(rows.num_entries, np.uint32) for _ in Votes._fields))
    used = _count_votes(rows.offsets, rows.columns, labels, num_labels, *votes)
    return Votes(*(column[:used] for column in votes))


def most_voted(votes: tuple[Votes, ...], old: Labels, num_labels: int) -> Labels:
    """The label with most votes for each row, from all piles of votes together."""
    rows, labels, counts = (np.concatenate(column) for column in zip(*votes, strict=True))
    order = np.argsort(rows, kind="stable")
    offsets = row_offsets(np.bincount(rows, minlength=len(old)))
    chosen: Labels = _most_voted(offsets, labels[order], counts[order], old, num_labels)
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
    table = np.zeros(num_labels, np.uint32)
    for row in range(start, stop):
        best, most = labels[row], np.uint32(0)
        sources = out_columns[out_offsets[row] : out_offsets[row + 1]]
        targets = into_columns[into_offsets[row] : into_offsets[row + 1]]
        for column in sources:
            best, most = _vote(table, labels[column], np.uint32(1), best, most)
        for column in targets:
            best, most = _vote(table, labels[column], np.uint32(1), best, most)
        for column in sources:
            table[labels[column]] = 0
        for column in targets:
            table[labels[column]] = 0
        chosen[row] = best


@compiled
def _vote(table: Any, label: Any, weight: Any, best: Any, most: Any) -> Any:
    """Add votes; the best label so far and its votes. Counts only grow, so no second look."""
    count = np.uint32(table[label] + weight)
    table[label] = count
    if count > most or (count == most and label < best):
        return label, count
    return best, most


@compiled
def _count_votes(
    offsets: Any,
    columns: Any,
    labels: Any,
    num_labels: Any,
    vote_rows: Any,
    vote_labels: Any,
    vote_counts: Any,
) -> Any:
    places = np.zeros(num_labels, np.uint64)  # of the votes for a label, plus one
    one = np.uint64(1)
    used = np.uint64(0)
    for row in range(len(offsets) - 1):
        first = used
        for entry in range(offsets[row], offsets[row + 1]):
            label = labels[columns[entry]]
            place = places[label]
            if place > first:
                vote_counts[place - one] += np.uint32(1)
            else:  # not yet there in this row: what stands there is of an earlier one
                vote_rows[used] = np.uint32(row)
                vote_labels[used] = label
                vote_counts[used] = np.uint32(1)
                used = np.uint64(used + one)
                places[label] = used
    return used


@compiled
def _most_voted(offsets: Any, vote_labels: Any, vote_counts: Any, old: Any, num_labels: Any) -> Any:
    table = np.zeros(num_labels, np.uint32)
    chosen = old.copy()
    for row in range(len(old)):
        best, most = old[row], np.uint32(0)
        for vote in range(offsets[row], offsets[row + 1]):
            best, most = _vote(table, vote_labels[vote], vote_counts[vote], best, most)
        for vote in range(offsets[row], offsets[row + 1]):
            table[vote_labels[vote]] = np.uint32(0)
        chosen[row] = best
    return chosen
