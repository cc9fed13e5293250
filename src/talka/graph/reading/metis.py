"""Edges from METIS files: line v has the neighbours of vertex v, counted from 1.

The format is defined by METIS 5 (section 4.1.1 of its manual): the first line is `n m [fmt
[ncon]]`. fmt has three digits, for vertex sizes, vertex weights (ncon of them) and edge weights; a
digit is 1 if they are present. An empty line is a vertex without neighbours; lines that begin with
% are comments.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from talka.errors import EdgeFileError
from talka.events.stream import Stream
from talka.graph.building.memory import check_it_fits
from talka.graph.reading.base import Edges
from talka.graph.reading.blocks import MAX_LONG_LINE_BYTES, blocks, size_of
from talka.graph.reading.fields import BadLine, FieldRows
from talka.inputs import name_of

_COMMENT = re.compile(rb"(?:^|[\r\n])[ \t]*[%#]")
_LINE_END = re.compile(rb"\r\n|\r|\n")
_MAX_CONSTRAINTS = 1000
_SUSPICIOUS_FIELDS = 8  # a file with fewer may match METIS by chance


class MetisHeader(NamedTuple):
    """The first line of a METIS file."""

    num_vertices: int
    num_edges: int
    num_leading: int = 0
    """Number of fields in a line before its neighbours: size and weights of the vertex."""
    has_weights: bool = False
    """True if each neighbour is followed by the weight of the edge."""

    @property
    def num_fields(self) -> int:
        """Number of fields in all lines after the first."""
        return self.num_vertices * self.num_leading + 2 * self.num_edges * (1 + self.has_weights)


class _Lines(NamedTuple):
    """Fields of a block, and their lines, counted without comments."""

    numbers: NDArray[np.int64]
    lengths: NDArray[np.int64]
    lines: NDArray[np.int64]
    num_lines: int


def read_metis(path: Path, events: Stream) -> Edges:
    """Read both directions of every edge, which are one edge in an undirected graph."""
    with events.phase("graph/read", total=size_of(path), unit="bytes") as phase:
        header, numbers, lengths, vertices = _read(path, phase.advance)
    starts = np.cumsum(lengths) - lengths
    place = np.arange(len(numbers)) - np.repeat(starts, lengths) - header.num_leading
    stride = 1 + header.has_weights
    is_bad = (lengths - header.num_leading < 0) | ((lengths - header.num_leading) % stride != 0)
    if is_bad.any():
        bad = np.argmax(is_bad)
        raise _invalid(path, f"the line of vertex {int(vertices[bad])} has {lengths[bad]} fields")
    is_target = (place >= 0) & (place % stride == 0)
    targets = numbers[is_target]
    sources = np.repeat(vertices, (lengths - header.num_leading) // stride)
    if len(targets) != 2 * header.num_edges:
        expected = f"{header.num_edges:,} edges, each in two lines"
        problem = f"it has {len(targets):,} neighbours, but the first line declares {expected}"
        raise _invalid(path, problem)
    if len(targets) and not (targets.min() >= 1 and targets.max() <= header.num_vertices):
        expected = f"{header.num_vertices:,} vertices, counted from 1"
        limits = f"{targets.min()} to {targets.max()}"
        problem = f"it has neighbours from {limits}, but the first line declares {expected}"
        raise _invalid(path, problem)
    weights = numbers[(place >= 0) & (place % stride == 1)].astype(np.float64)
    ids = np.arange(1, header.num_vertices + 1, dtype=np.int64)
    return Edges(sources, targets, weights if header.has_weights else None, ids, twice=True)


def _read(path: Path, advance: Callable[[float], None]) -> tuple[MetisHeader, Any, Any, Any]:
    """Return the header, all numbers after it, and the length and vertex of each line."""
    all_lines: list[_Lines] = []
    header: MetisHeader | None = None
    num_lines, num_file_lines = 0, 0
    for text in blocks(path, advance, max_line_bytes=MAX_LONG_LINE_BYTES):
        try:
            lines = _lines(text)
        except BadLine as bad:
            line = num_file_lines + bad.line + 1
            raise EdgeFileError(name_of(path), line, bad.problem, bad.advice) from None
        if header is None and len(lines.lengths):
            header = header_of(lines.numbers[: lines.lengths[0]].tolist())
            if header is None:
                raise _invalid(path, "its first line is not `n m [fmt [ncon]]`")
            check_it_fits(2 * header.num_edges, is_weighted=header.has_weights, is_read=True)
            num_lines = -1 - int(lines.lines[0])  # the header is line -1
            first = int(lines.lengths[0])
            lines = lines._replace(
                numbers=lines.numbers[first:], lengths=lines.lengths[1:], lines=lines.lines[1:]
            )
        all_lines.append(lines._replace(lines=lines.lines + num_lines))
        num_lines += lines.num_lines
        num_file_lines += len(_LINE_END.findall(text))
    if header is None:
        raise _invalid(path, "it is empty")
    numbers, lengths, vertices = (
        np.concatenate([lines[column] for lines in all_lines]) for column in range(3)
    )
    if len(vertices) and vertices[-1] >= header.num_vertices:
        expected = f"but the first line declares {header.num_vertices:,} vertices"
        raise _invalid(path, f"it has {vertices[-1] + 1:,} lines after the first, {expected}")
    return header, numbers, lengths, vertices + 1


def _lines(text: bytes) -> _Lines:
    rows = FieldRows(text)
    integers = rows.integers()
    lengths = np.diff(rows.ends, prepend=0)
    lines, num_lines = rows.lines, rows.num_lines
    comments = [match.end() for match in _COMMENT.finditer(text)]
    if comments:
        line_ends = [match.end() for match in _LINE_END.finditer(text)]
        lines = lines - np.searchsorted(np.searchsorted(line_ends, comments), lines)
        num_lines -= len(comments)
    return _Lines(integers.values.astype(np.int64), lengths, lines, num_lines)


def refuse_metis(
    path: Path, first: list[int], num_lines: int, rest: Sequence[NDArray[Any]]
) -> None:
    """Raise EdgeFileError for METIS files read as lists of neighbours: the graph would be wrong.

    A file is METIS if the numbers of lines, neighbours and ids match the first line.
    If each line began with an id, one of `n` vertices would have two lines.

    rest
        The ids after the first line.
    """
    header = header_of(first)
    if header is None or header.num_vertices != num_lines:
        return
    num_fields = sum(len(ids) for ids in rest)
    if num_fields != header.num_fields or num_fields < _SUSPICIOUS_FIELDS:
        return
    is_plain = header.num_leading == 0 and not header.has_weights
    if is_plain and any(
        len(ids) and not (ids.min() >= 1 and ids.max() <= header.num_vertices) for ids in rest
    ):
        return
    problem = "it is METIS, whose lines do not begin with the id of their vertex"
    advice = 'Use format="metis" (--input-format metis), or a name that ends in .metis.'
    raise EdgeFileError(name_of(path), None, problem, advice)


def header_of(fields: list[int]) -> MetisHeader | None:
    """Parse the fields of the first line; return None if it is not a header.

    >>> header_of([7, 11, 11, 2])
    MetisHeader(num_vertices=7, num_edges=11, num_leading=2, has_weights=True)
    """
    if not 2 <= len(fields) <= 4 or min(fields) < 0:
        return None
    digits = f"{fields[2] if len(fields) > 2 else 0:03d}"
    num_weights = fields[3] if len(fields) > 3 else 1
    if len(digits) > 3 or set(digits) - {"0", "1"} or num_weights > _MAX_CONSTRAINTS:
        return None
    num_leading = (digits[0] == "1") + (digits[1] == "1") * num_weights
    return MetisHeader(fields[0], fields[1], num_leading, digits[2] == "1")


def _invalid(path: Path, problem: str) -> EdgeFileError:
    advice = "Is it METIS, and complete? Otherwise give the format of the file."
    return EdgeFileError(name_of(path), None, problem, advice)
