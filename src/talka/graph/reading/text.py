"""Edges from text: one line per edge, one line per vertex, or lists of neighbours.

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
from talka.graph.reading.fields import BadLine, FieldRows, Integers
from talka.graph.reading.foreign import refuse_beginning
from talka.graph.reading.matrix_market import edges_of_matrix, is_matrix, sniff_matrix
from talka.graph.reading.metis import refuse_metis
from talka.graph.reading.sniffing import LineForm, data_lines, sniff_edges, sniff_lines
from talka.inputs import name_of
from talka.machine import num_cores
from talka.threads import ThreadPool
from talka.units import format_bytes

_COMPRESSION_RATIO = 4  # edge lists shrink to a quarter or less
_MAX_BEGINNING_BYTES = 1 << 26  # of comments before the first edge


class ParsedBlock(NamedTuple):
    """The columns of a block of lines."""

    ids: tuple[Any, ...]
    weights: NDArray[np.float64] | None
    num_lines: int


class ParsedFile(NamedTuple):
    """The columns of a whole file."""

    ids: list[Any]
    weights: NDArray[np.float64] | None
    form: LineForm
    num_lines: int


Sniff = Callable[[bytes], tuple[LineForm, bytes]]
Parse = Callable[[FieldRows, LineForm], ParsedBlock]


def read_edge_list(path: Path, events: Stream, *, find_counts: bool = False) -> Edges:
    """Read one edge per line: source, target and, if there is a third field, the weight.

    find_counts
        True if the first line may hold the numbers of vertices and edges.
    """
    read = read_columns(path, _sniff_edges_or_matrix, parse_edges, events)
    sources, targets = read.ids
    if read.form.matrix is not None:
        return edges_of_matrix(path, read.form.matrix, (sources, targets, read.weights))
    edges = Edges(sources, targets, read.weights, notes=read.form.notes)
    may_have_counts = read.form.has_counts or (find_counts and read.form.counts)
    return without_counts(path, edges, read.form) if may_have_counts else edges


def _sniff_edges_or_matrix(text: bytes) -> tuple[LineForm, bytes]:
    return sniff_matrix(text) if is_matrix(text) else sniff_edges(text)


def read_matrix_market(path: Path, events: Stream) -> Edges:
    """Read one matrix entry per line, after a banner and a line with the size of the matrix."""
    read = read_columns(path, sniff_matrix, parse_edges, events)
    assert read.form.matrix is not None
    rows, columns = read.ids
    return edges_of_matrix(path, read.form.matrix, (rows, columns, read.weights))


def read_neighbours(path: Path, events: Stream) -> Edges:
    """Read one vertex per line: its id, and those of its neighbours."""
    read = read_columns(path, sniff_lines, _neighbours, events, MAX_LONG_LINE_BYTES)
    sources, others, vertices = read.ids
    first = read.form.counts
    if first and not read.form.has_strings:
        rest = (others[len(first) - 1 :], vertices[1:])
        refuse_metis(path, list(first), read.num_lines - read.form.line - 1, rest)
    return Edges(sources, others, vertices=vertices, twice=True)


def read_vertices(path: Path, events: Stream) -> Any:
    """Read one vertex id per line, followed by any other fields."""
    return read_columns(path, sniff_lines, _vertices, events).ids[0]


def parse_edges(rows: FieldRows, form: LineForm) -> ParsedBlock:
    """Parse the sources, targets and weights of a block."""
    if form.num_fields < 2:
        raise BadLine(form.line, "an edge needs two fields, source and target", "Fix the file.")
    at, width = form.at, form.num_fields
    reads: list[Callable[[], Any]] = [
        partial(_ids, rows, form, place) for place in (at.source, at.target)
    ]
    if at.weight is not None:
        reads.append(partial(rows.weights, at.weight, width))
    sources, targets, *weights = _columns(rows, form, reads)
    return ParsedBlock((sources, targets), weights[0] if weights else None, rows.num_lines)


def _vertices(rows: FieldRows, form: LineForm) -> ParsedBlock:
    return ParsedBlock(
        tuple(_columns(rows, form, [partial(_ids, rows, form, 0)])), None, rows.num_lines
    )


def _columns(rows: FieldRows, form: LineForm, reads: list[Callable[[], Any]]) -> list[Any]:
    """Return the results of all `reads`, or raise the error of the first invalid line."""
    bad = rows.cut_to_width(form.num_fields)
    columns = []
    for read in reads:
        try:
            columns.append(read())
        except BadLine as problem:
            bad.append(problem)
    if bad:
        raise min(bad, key=lambda problem: problem.line)
    return columns


def _neighbours(rows: FieldRows, form: LineForm) -> ParsedBlock:
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
    return ParsedBlock(columns, None, rows.num_lines)


def _ids(rows: FieldRows, form: LineForm, place: int) -> Any:
    read = rows.strings if form.has_strings else rows.integers
    return read(place, form.num_fields)


def read_columns(
    path: Path, sniff: Sniff, parse: Parse, events: Stream, max_line_bytes: int = MAX_LINE_BYTES
) -> ParsedFile:
    """Read a whole file: `sniff` detects the form of lines, `parse` parses a block."""
    size = size_of(path)
    with events.phase("graph/read", total=size, unit="bytes") as phase:
        texts = blocks(path, phase.advance, max_line_bytes=max_line_bytes)
        parsed: list[ParsedBlock] = []
        num_lines = 0
        try:
            form, first = sniff(_beginning(path, texts))
            for block in _parsed(itertools.chain([first], texts), parse, form):
                parsed.append(block)
                if size is None:
                    _check_read(parsed)
                elif len(parsed) == 1:
                    _check_size(path, size, first, block)
                num_lines += block.num_lines
        except BadLine as bad:
            line = num_lines + bad.line + 1
            raise EdgeFileError(name_of(path), line, bad.problem, bad.advice) from None
        return ParsedFile(*_joined(path, parsed, form), form, num_lines)


def _beginning(path: Path, texts: Iterator[bytes]) -> bytes:
    """Join blocks until they have two lines that are neither empty nor comments."""
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


def _parsed(texts: Iterator[bytes], parse: Parse, form: LineForm) -> Iterator[ParsedBlock]:
    with ThreadPool(num_cores()) as pool:
        yield from pool.map(lambda text: parse(FieldRows(text), form), texts)


def _check_size(path: Path, size: int, first: bytes, block: ParsedBlock) -> None:
    """Check the memory for the whole file, extrapolated from the edges of its first block."""
    is_compressed = path.suffix in (".gz", ".zst")
    per_byte = _length(block.ids[0]) / max(1, len(first))
    num_edges = per_byte * size * (_COMPRESSION_RATIO if is_compressed else 1)
    check_it_fits(num_edges, is_weighted=block.weights is not None, is_read=True)


def _check_read(parsed: list[ParsedBlock]) -> None:
    """Check the memory for the edges so far, as the size of a pipe is unknown."""
    num_edges = sum(_length(block.ids[0]) for block in parsed)
    check_it_fits(num_edges, is_weighted=parsed[0].weights is not None, is_read=False)


def _length(column: Any) -> int:
    return len(column.values if isinstance(column, Integers) else column)


def _joined(
    path: Path, parsed: list[ParsedBlock], form: LineForm
) -> tuple[list[Any], NDArray[np.float64] | None]:
    columns = list(zip(*(block.ids for block in parsed), strict=True))
    weights = None
    if parsed[0].weights is not None:
        weights = np.concatenate([block.weights for block in parsed if block.weights is not None])
    parsed.clear()
    if form.has_strings:
        return [pa.chunked_array(list(column)) for column in columns], weights
    has_negative = any(block.has_negative for column in columns for block in column)
    is_large = any(block.is_large for column in columns for block in column)
    if has_negative and is_large:
        problem = "it has negative ids and ids beyond the 63 bits of signed numbers"
        advice = "Give such ids as strings, in an Arrow table, or renumber the vertices."
        raise EdgeFileError(name_of(path), None, problem, advice)
    joined = []
    while columns:  # each column is freed when it is joined
        column = np.concatenate([block.values for block in columns.pop(0)])
        joined.append(column if column.itemsize == 4 or is_large else column.view(np.int64))
    return joined, weights
