"""Edges from text: a line for each edge, a line for each vertex, or a line of neighbours.

file -> blocks of lines -> fields (threads) -> columns

The first lines decide what the file is (`sniffed`): whether ids are whole numbers or strings,
how many fields a line has, and whether the first line is a header. All other lines must agree.
"""

import itertools
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from talka.data.text.crew import Crew
from talka.errors import EdgeFileError
from talka.events.stream import Stream
from talka.graph.kernels.threads import num_cores
from talka.graph.memory import check_it_fits
from talka.graph.reading.base import Edges
from talka.graph.reading.blocks import blocks, size_of
from talka.graph.reading.fields import COMMENTS, GAPS, BadLine, Integers, Rows
from talka.graph.reading.names import is_header

_PACKED_RATIO = 4  # edge lists shrink to a quarter or less
_GAP = re.compile(b"[" + GAPS + b"]+")
_WHOLE = re.compile(rb"-?[0-9]+")


class Form(NamedTuple):
    """What the lines of a file are like."""

    num_fields: int
    has_strings: bool
    line: int = 0
    """The first that is an edge, from 0 on."""


class Part(NamedTuple):
    """What became of a block: columns of ids, and weights."""

    ids: tuple[Any, ...]
    weights: NDArray[np.float64] | None
    num_lines: int


Parse = Callable[[Rows, Form], Part]


def read_edge_list(path: Path, events: Stream) -> Edges:
    """A line for each edge: source, target and, if there is a third field, the weight."""
    columns, weights = _read(path, _edges, events)
    return Edges(columns[0], columns[1], weights)


def read_neighbours(path: Path, events: Stream) -> Edges:
    """A line for each vertex: its id, and those of its neighbours."""
    columns, _ = _read(path, _neighbours, events)
    return Edges(columns[0], columns[1], vertices=columns[2], twice=True)


def read_vertices(path: Path, events: Stream) -> Any:
    """A line for each vertex: its id, and whatever else."""
    columns, _ = _read(path, _vertices, events)
    return columns[0]


def _edges(rows: Rows, form: Form) -> Part:
    if form.num_fields < 2:
        raise BadLine(form.line, "an edge needs two fields, source and target", "Mend the file.")
    reads: list[Callable[[], Any]] = [partial(_ids, rows, form, place) for place in (0, 1)]
    if form.num_fields > 2:
        reads.append(partial(rows.weights, 2, form.num_fields))
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


def _read(path: Path, parse: Parse, events: Stream) -> tuple[list[Any], Any]:
    """Columns of ids and the weights of a whole file."""
    size = size_of(path)
    with events.phase("graph/read", total=size, unit="bytes") as phase:
        texts = blocks(path, phase.advance)
        form, first = sniffed(_beginning(texts))
        parts: list[Part] = []
        num_lines = 0
        results = _parsed(itertools.chain([first], texts), parse, form)
        try:
            for part in results:
                if not parts:
                    _check_size(path, size, first, part)
                parts.append(part)
                num_lines += part.num_lines
        except BadLine as bad:
            line = num_lines + bad.line + 1
            raise EdgeFileError(str(path), line, bad.problem, bad.advice) from None
        return _joined(path, parts, form)


def _beginning(texts: Iterator[bytes]) -> bytes:
    """As many blocks as it takes to have two lines that are no comments."""
    first = next(texts)
    while len(list(itertools.islice(_data_lines(first), 2))) < 2:
        more = next(texts, None)
        if more is None:
            break
        first += more
    return first


def _parsed(texts: Iterator[bytes], parse: Parse, form: Form) -> Iterator[Part]:
    with Crew(num_cores()) as crew:
        yield from crew.map(lambda text: parse(Rows(text), form), texts)


def _check_size(path: Path, size: int, first: bytes, part: Part) -> None:
    """From how many edges the first block has, what the whole file will have."""
    is_packed = path.suffix in (".gz", ".zst")
    per_byte = _length(part.ids[0]) / max(1, len(first))
    num_edges = per_byte * size * (_PACKED_RATIO if is_packed else 1)
    check_it_fits(num_edges, is_weighted=part.weights is not None, is_read=True)


def _length(column: Any) -> int:
    return len(column.values if isinstance(column, Integers) else column)


def _joined(path: Path, parts: list[Part], form: Form) -> tuple[list[Any], Any]:
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
        raise EdgeFileError(str(path), None, problem, advice)
    joined = []
    while columns:  # each column is freed when it is joined
        column = np.concatenate([one.values for one in columns.pop(0)])
        joined.append(column if column.itemsize == 4 or is_large else column.view(np.int64))
    return joined, weights


def sniffed(text: bytes) -> tuple[Form, bytes]:
    """What the first two lines say of all, and the text with a header made a comment.

    Ids are whole numbers if those of the second line are, or of the only one. The first line is a
    header if its ids are no whole numbers and those of the second are, or if it has the names that
    columns of edges have.
    """
    found = list(itertools.islice(_data_lines(text), 2))
    if not found:
        return Form(2, has_strings=False), text
    at, first = found[0]
    second = found[1][1] if len(found) > 1 else None
    if is_header([field.decode(errors="replace") for field in first]) or (
        not _are_whole(first) and second is not None and _are_whole(second)
    ):
        text = text[:at] + COMMENTS[:1] + text[at + 1 :]
        if second is None:
            return Form(len(first), has_strings=False), text
        at, first = found[1]
    line = text.count(b"\n", 0, at)
    return Form(len(first), has_strings=not _are_whole(first), line=line), text


def _data_lines(text: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """Lines that are no comments and not empty: where they begin, and their fields."""
    at = 0
    while at < len(text):
        end = text.find(b"\n", at)
        end = len(text) if end < 0 else end
        fields = [field for field in _GAP.split(text[at:end]) if field]
        if fields and fields[0][0] not in COMMENTS:
            yield at + text[at:end].index(fields[0]), fields
        at = end + 1


def _are_whole(fields: list[bytes]) -> bool:
    """Whether the ids of a line are whole numbers: its first two fields, if there are two."""
    return all(_WHOLE.fullmatch(field) for field in fields[:2])
