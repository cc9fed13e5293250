"""Kernels that count co-occurrences, one word at a time.

The text is inverted: each word has the list of its positions. The windows around these positions
are summed into one accumulator with an entry per word of the vocabulary; the entries that were
touched are the row of the word. This needs no dense block and no sort.

Indices are unsigned, so that numba omits the check for negative ones.
"""

from typing import Any, Final

import numpy as np

from talka.compiled import compiled
from talka.data.text.word_kernels import FILE_END, LINE_END

_ONE: Final = np.uint64(1)
_HALF: Final = np.uint64(32)
_MIX_A: Final = np.uint64(0xBF58476D1CE4E5B9)
_MIX_B: Final = np.uint64(0x94D049BB133111EB)
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)


@compiled
def keep_known(ids: Any, across_lines: Any, mark: Any, known: Any) -> Any:
    """Copy ids without words outside the vocabulary, with `mark` where windows end.

    Returns the number of ids written. Adjacent marks are merged.
    """
    num_known = 0
    for index in range(len(ids)):
        if ids[index] >= 0:
            known[num_known] = ids[index]
            num_known += 1
            continue
        ends_window = ids[index] == FILE_END or (ids[index] == LINE_END and not across_lines)
        if ends_window and (num_known == 0 or known[num_known - 1] != mark):
            known[num_known] = mark
            num_known += 1
    return num_known


@compiled
def count_known(ids: Any, first: Any, stop: Any, counts: Any) -> None:
    """Count each id of ids[first:stop]; the last entry of `counts` is that of the mark."""
    for position in range(first, stop):
        counts[ids[position]] += 1


@compiled
def place_positions(ids: Any, first: Any, stop: Any, next_place: Any, positions: Any) -> None:
    """Write each position to the next place of its word, in ascending order per word."""
    mark = len(next_place) - 1
    for position in range(first, stop):
        word = ids[position]
        if word != mark:
            positions[next_place[word]] = position
            next_place[word] += 1


@compiled
def sum_windows(
    ids: Any, positions: Any, starts: Any, weights: Any, totals: Any, columns: Any, sums: Any
) -> Any:
    """Compute the rows of words with positions positions[starts[w]:starts[w + 1]].

    Columns are in the order of their first occurrence; `totals` must be zero and is zero again
    afterwards. Returns the end of each row in `columns` and `sums`.
    """
    # Idea: a row is summed in `totals`, a dense accumulator with an entry per word, while `columns`
    # lists the entries that were touched. Adding is one random access instead of a hash look-up or
    # a sort, and only touched entries are read and reset.
    #
    # The list is kept without branches: each column is written at `end`, and `end` advances only if
    # its total was zero; otherwise the next column overwrites it. Hence `columns` needs one spare
    # entry. Weights are positive, so a touched total is never zero.
    #
    # Both ends of `ids` are marks, so the loops need no check for the ends of the text.
    mark = len(totals)
    row_ends = np.empty(len(starts) - 1, np.int64)
    end = 0
    for row in range(len(starts) - 1):
        begin = end
        for place in range(starts[row], starts[row + 1]):
            position = np.uint64(positions[place])
            left = right = position
            for distance in range(1, len(weights)):
                left -= _ONE
                column = ids[left]
                if column == mark:
                    break
                columns[end] = column
                end += totals[column] == 0
                totals[column] += weights[distance]
            for distance in range(1, len(weights)):
                right += _ONE
                column = ids[right]
                if column == mark:
                    break
                columns[end] = column
                end += totals[column] == 0
                totals[column] += weights[distance]

        # Move the sums of the row out, and reset the accumulator for the next row.
        for index in range(begin, end):
            sums[index] = totals[columns[index]]
            totals[columns[index]] = 0
        row_ends[row] = end
    return row_ends


@compiled
def sum_runs(
    run_columns: Any, run_sums: Any, starts: Any, totals: Any, columns: Any, sums: Any
) -> Any:
    """Sum rows over runs: the part of row w in run r is [starts[r, w], starts[r, w + 1]).

    Runs are added in the order of the text, so columns are in the same order as with `sum_windows`
    over the whole text. The accumulator works as in `sum_windows`.
    """
    num_runs, num_rows = starts.shape[0], starts.shape[1] - 1
    row_ends = np.empty(num_rows, np.int64)
    end = 0
    for row in range(num_rows):
        begin = end
        for run in range(num_runs):
            for place in range(starts[run, row], starts[run, row + 1]):
                column = run_columns[place]
                columns[end] = column
                end += totals[column] == 0
                totals[column] += run_sums[place]
        for index in range(begin, end):
            sums[index] = totals[columns[index]]
            totals[columns[index]] = 0
        row_ends[row] = end
    return row_ends


@compiled
def pack_rows(
    columns: Any, sums: Any, row_ends: Any, first_row: Any, unit: Any, edge: Any, ends: Any
) -> Any:
    """Pack rows into 64-bit records, grouped by column block.

    A record is row and column relative to the block (16 bits each), then the count as float32, as
    in `PAIR`. Counts are sums / unit. `ends`, zero at first, gets the end of each column block.
    """
    # Counting sort by column block. First pass: count the records of each block, then turn the
    # counts into start and end positions.
    num_entries = row_ends[-1]
    for index in range(num_entries):
        ends[columns[index] // edge] += 1
    next_place = np.zeros(len(ends), np.int64)
    for block in range(1, len(ends)):
        ends[block] += ends[block - 1]
        next_place[block] = ends[block - 1]

    # Second pass: write each record to the next place of its block. A record is one 64-bit store.
    # `bits` is a view of `count`: it reinterprets the float32 as an integer.
    records = np.empty(num_entries, np.uint64)
    count = np.empty(1, np.float32)
    bits = count.view(np.uint32)
    begin = 0
    for row in range(len(row_ends)):
        inner_row = np.uint64(first_row + row)
        for index in range(begin, row_ends[row]):
            block = columns[index] // edge
            inner_column = np.uint64(columns[index] - block * edge)
            count[0] = sums[index] / unit
            place = next_place[block]
            next_place[block] = place + 1
            records[place] = np.uint64(bits[0]) << _HALF | inner_column << np.uint64(16) | inner_row
        begin = row_ends[row]
    return records


@compiled
def _mixed(number: Any) -> Any:
    number = (number ^ number >> np.uint64(30)) * _MIX_A
    number = (number ^ number >> np.uint64(27)) * _MIX_B
    return number ^ number >> np.uint64(31)


@compiled
def shuffle_block(
    records: Any, first: Any, stop: Any, seed: Any, row_block: Any, col_block: Any
) -> None:
    """Swap each of records[first:stop] with a random one up to itself (Fisher and Yates).

    Applied to all records in ascending order, this makes every permutation equally likely. Random
    numbers depend only on the seed, the block and the index.
    """
    key = _mixed(np.uint64(seed) * _STEP + np.uint64(row_block))
    key = _mixed(key * _STEP + np.uint64(col_block))
    for index in range(first, min(stop, len(records))):
        draw = _mixed(key + np.uint64(index) * _STEP) >> _HALF
        other = draw * np.uint64(index + 1) >> _HALF
        records[index], records[other] = records[other], records[index]
