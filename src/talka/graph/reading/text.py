"""Edges from text: a line for each edge, a line for each vertex, or a line of neighbours.

file -> blocks of lines -> fields (threads) -> columns
"""

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from talka.errors import EdgeFileError
from talka.events.stream import Stream
from talka.graph.building.memory import check_it_fits
from talka.graph.reading.base import Edges
from talka.graph.reading.blocks import MAX_LINE_BYTES, MAX_LONG_LINE_BYTES, blocks, size_of
from talka.graph.reading.counts import without_counts
from talka.graph.reading.fields import BadLine, Integers, Rows
from talka.graph.reading.foreign import refuse_beginning
from talka.graph.reading.matrix_market import edges_of_matrix, is_matrix, sniffed_matrix
from talka.graph.reading.metis import refuse_metis
from talka.graph.reading.sniffing import Form, data_lines, sniffed, sniffed_edges
from talka.inputs import name_of
from talka.machine import num_cores
from talka.threads import ThreadPool
from talka.units import format_bytes

_PACKED_RATIO = 4  # edge lists shrink to a quarter or less
_MAX_BEGINNING_BYTES = 1 << 26  # of comments before the first edges


class Part(NamedTuple):
    """What became of a block: columns of ids, and weights."""

    ids: tuple[Any, ...]
    weights: NDArray[np.float64] | None
    num_lines: int


class Columns(NamedTuple):
    """What became of a whole file."""

    ids: list[Any]
    weights: NDArray[np.float64] | None
    form: Form
    num_lines: int


Sniff = Callable[[bytes], tuple[Form, bytes]]
Parse = Callable[[Rows, Form], Part]


def read_edge_list(path: Path, events: Stream, *, find_counts: bool = False) -> Edges:
    """A line for each edge: source, target and, if there is a third field, the weight.

    find_counts
        Whether the first line may say how many vertices and edges follow.
    """
    read = read_columns(path, _sniffed_edges_or_matrix, parse_edges, events)
    sources, targets = read.ids
    if read.form.matrix is not None:
        return edges_of_matrix(path, read.form.matrix, (sources, targets, read.weights))
    edges = Edges(sources, targets, read.weights, notes=read.form.notes)
    may_have_counts = read.form.has_counts or (find_counts and read.form.counts)
    return without_counts(path, edges, read.form) if may_have_counts else edges


def _sniffed_edges_or_matrix(text: bytes) -> tuple[Form, bytes]:
    return sniffed_matrix(text) if is_matrix(text) else sniffed_edges(text)


def read_matrix_market(path: Path, events: Stream) -> Edges:
    """A line for each entry of a square matrix, after a banner and a line with its size."""
    read = read_columns(path, sniffed_matrix, parse_edges, events)
    assert read.form.matrix is not None
    rows, columns = read.ids
    return edges_of_matrix(path, read.form.matrix, (rows, columns, read.weights))


def read_neighbours(path: Path, events: Stream) -> Edges:
    """A line for each vertex: its id, and those of its neighbours."""
    read = read_columns(path, sniffed, _neighbours, events, MAX_LONG_LINE_BYTES)
    sources, others, vertices = read.ids
    first = read.form.counts
    if first and not read.form.has_strings:
        rest = (others[len(first) - 1 :], vertices[1:])
        refuse_metis(path, list(first), read.num_lines - read.form.line - 1, rest)
    return Edges(sources, others, vertices=vertices, twice=True)


def read_vertices(path: Path, events: Stream) -> Any:
    """A line for each vertex: its id, and whatever else."""
    return read_columns(path, sniffed, _vertices, events).ids[0]


def parse_edges(rows: Rows, form: Form) -> Part:
    if form.num_fields < 2:
        raise BadLine(form.line, "an edge needs two fields, source and target", "Mend the file.")
    at, width = form.at, form.num_fields
    reads: list[Callable[[], Any]] = [
        partial(_ids, rows, form, place) for place in (at.source, at.target)
    ]
    if at.weight is not None:
        reads.append(partial(rows.weights, at.weight, width))
    sources, targets, *weights = _columns(rows, form, reads)
    return Part((sources, targets), weights[0] if weights else None, rows.num_lines)


def _vertices(rows: Rows, form: Form) -> Part:
    return Part(tuple(_columns(rows, form, [partial(_ids, rows, form, 0)])), None, rows.num_lines)


def _columns(rows: Rows, form: Form, reads: list[Callable[[], Any]]) -> list[Any]:
    """What all of them give, or the first line that is to blame for anything."""
    bad = rows.cut_to_width(form.num_fields)
    columns = []
    for read in reads:
        try:
            columns.append(read())
        except BadLine as problem:
            bad.append(problem)
    if bad:
        raise min(bad, key=lambda one: one.line)
    return columns


def _neighbours(rows: Rows, form: Form) -> Part:
    starts = np.concatenate([[0], rows.ends[:-1]]).astype(np.int64)[: rows.num_rows]
    of_row = np.repeat(starts, rows.ends - starts - 1)
    others = np.delete(np.arange(rows.num_fields), starts)
    ids: Any = rows.strings() if form.has_strings else rows.integers()
    if form.has_strings:
        columns = tuple(ids.take(pa.array(places)) for places in (of_row, others, starts))
    else:
        columns = tuple(
            ids._replace(values=ids.values[places]) for places in (of_row, others, starts)
        )
    return Part(columns, None, rows.num_lines)


def _ids(rows: Rows, form: Form, place: int) -> Any:
    read = rows.strings if form.has_strings else rows.integers
    return read(place, form.num_fields)


def read_columns(
    path: Path, sniff: Sniff, parse: Parse, events: Stream, max_line_bytes: int = MAX_LINE_BYTES
) -> Columns:
    """Read a whole file: `sniff` looks at its beginning, `parse` makes columns of a block."""
    size = size_of(path)
    with events.phase("graph/read", total=size, unit="bytes") as phase:
        texts = blocks(path, phase.advance, max_line_bytes=max_line_bytes)
        parts: list[Part] = []
        num_lines = 0
        try:
            form, first = sniff(_beginning(path, texts))
            for part in _parsed(itertools.chain([first], texts), parse, form):
                parts.append(part)
                if size is None:
                    _check_read(parts)
                elif len(parts) == 1:
                    _check_size(path, size, first, part)
                num_lines += part.num_lines
        except BadLine as bad:
            line = num_lines + bad.line + 1
            raise EdgeFileError(name_of(path), line, bad.problem, bad.advice) from None
        return Columns(*_joined(path, parts, form), form, num_lines)


def _beginning(path: Path, texts: Iterator[bytes]) -> bytes:
    """As many blocks as it takes to have two lines that are not comments."""
    first = next(texts)
    refuse_beginning(path, first)
    while len(list(itertools.islice(data_lines(first), 2))) < 2:
        more = next(texts, None)
        if more is None:
            break
        first += more
        if len(first) > _MAX_BEGINNING_BYTES:
            problem = f"its first {format_bytes(len(first))} are comments and empty lines"
            raise EdgeFileError(name_of(path), None, problem, "Is it a list of edges?")
    return first


def _parsed(texts: Iterator[bytes], parse: Parse, form: Form) -> Iterator[Part]:
    with ThreadPool(num_cores()) as pool:
        yield from pool.map(lambda text: parse(Rows(text), form), texts)


def _check_size(path: Path, size: int, first: bytes, part: Part) -> None:
    """From how many edges the first block has, what the whole file will have."""
    is_packed = path.suffix in (".gz", ".zst")
    per_byte = _length(part.ids[0]) / max(1, len(first))
    num_edges = per_byte * size * (_PACKED_RATIO if is_packed else 1)
    check_it_fits(num_edges, is_weighted=part.weights is not None, is_read=True)


def _check_read(parts: list[Part]) -> None:
    """Nobody knows how much a pipe will bring: could what it brought so far be built?"""
    num_edges = sum(_length(part.ids[0]) for part in parts)
    check_it_fits(num_edges, is_weighted=parts[0].weights is not None, is_read=False)


def _length(column: Any) -> int:
    return len(column.values if isinstance(column, Integers) else column)


def _joined(
    path: Path, parts: list[Part], form: Form
) -> tuple[list[Any], NDArray[np.float64] | None]:
    columns = list(zip(*(part.ids for part in parts), strict=True))
    weights = None
    if parts[0].weights is not None:
        weights = np.concatenate([part.weights for part in parts if part.weights is not None])
    parts.clear()
    if form.has_strings:
        return [pa.chunked_array(list(column)) for column in columns], weights
    has_negative = any(one.has_negative for column in columns for one in column)
    is_large = any(one.is_large for column in columns for one in column)
    if has_negative and is_large:
        problem = "it has negative ids and ids beyond the 63 bits of signed numbers"
        advice = "Give such ids as strings, in an Arrow table, or number the vertices anew."
        raise EdgeFileError(name_of(path), None, problem, advice)
    joined = []
    while columns:  # each column is freed when it is joined
        column = np.concatenate([one.values for one in columns.pop(0)])
        joined.append(column if column.itemsize == 4 or is_large else column.view(np.int64))
    return joined, weights
