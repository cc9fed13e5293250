"""Edges from MatrixMarket files: an entry of a square matrix is an edge from row to column.

The format is defined by NIST (math.nist.gov/MatrixMarket/formats.html): a banner, comments, a line
with the numbers of rows, columns and entries, then one line per entry, with indices from 1.
"""

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from talka.errors import EdgeFileError
from talka.graph.reading.base import Edges
from talka.graph.reading.fields import BadLine
from talka.graph.reading.names import Places
from talka.graph.reading.sniffing import (
    LineForm,
    MatrixHeader,
    comment_out,
    data_lines,
    line_of,
)
from talka.inputs import name_of

Entries = tuple[NDArray[Any], NDArray[Any], NDArray[np.float64] | None]
"""Rows, columns and values."""
_BANNER_LINE = re.compile(rb"%%MatrixMarket[ \t]+([^\r\n]*)", re.IGNORECASE)
_FIELDS = {"pattern": False, "real": True, "double": True, "integer": True}
"""True for fields whose entries have a value."""
_SIGNS = {"general": 0, "symmetric": 1, "skew-symmetric": -1}
"""Sign of the value on the other side of the diagonal; 0 if the file has both sides."""
_SUPPORTED = (
    "Coordinate matrices are supported: pattern, real or integer; general, symmetric or "
    "skew-symmetric."
)


def is_matrix(text: bytes) -> bool:
    """Return whether a text begins with the banner of the format."""
    return _BANNER_LINE.match(text) is not None


def edges_of_matrix(path: Path, header: MatrixHeader, entries: Entries) -> Edges:
    """Return the edges of a matrix: vertices are row numbers, weights are values.

    A symmetric file has one side of the diagonal; each entry becomes an edge in both directions,
    which is one edge in an undirected graph.
    """
    rows, columns, weights = entries
    _check(path, header, rows, columns)
    if header.sign:
        off_diagonal = rows != columns
        rows, columns = (
            np.concatenate([rows, columns[off_diagonal]]),
            np.concatenate([columns, rows[off_diagonal]]),
        )
        if weights is not None:
            weights = np.concatenate([weights, header.sign * weights[off_diagonal]])
    vertices = np.arange(1, header.num_rows + 1, dtype=np.int64)
    return Edges(rows, columns, weights, vertices, twice=header.sign != 0)


def sniff_matrix(text: bytes) -> tuple[LineForm, bytes]:
    """Parse banner and size line, and turn the latter into a comment."""
    banner = _BANNER_LINE.match(text)
    if banner is None:
        problem = "it does not begin with the banner %%MatrixMarket"
        raise BadLine(0, problem, "Add it, or give the format of the file.")
    has_values, sign = _meaning(banner[1].decode(errors="replace").lower().split())
    size = next(iter(data_lines(text)), None)
    if size is None:
        raise BadLine(0, "the line with the size of the matrix is missing", "Is it complete?")
    if len(size.fields) != 3 or not all(field.isdigit() for field in size.fields):
        problem = "the size of the matrix is not three whole numbers: rows, columns, entries"
        raise BadLine(line_of(text, size), problem, "Fix the line.")
    header = MatrixHeader(has_values, sign, *(int(field) for field in size.fields))
    if header.num_rows != header.num_columns:
        problem = f"a matrix of {header.num_rows:,} x {header.num_columns:,} is not a graph"
        advice = "Give a square matrix: rows and columns are the same vertices."
        raise BadLine(line_of(text, size), problem, advice)
    text = comment_out(text, size)
    line = next((line_of(text, entry) for entry in itertools.islice(data_lines(text), 1)), 0)
    at = Places(0, 1, 2 if has_values else None)
    return LineForm(2 + has_values, has_strings=False, line=line, at=at, matrix=header), text


def _meaning(words: list[str]) -> tuple[bool, int]:
    """Return whether there are values, and the sign of the other side of the diagonal."""
    is_known = len(words) == 4 and words[:2] == ["matrix", "coordinate"]
    if not is_known or words[2] not in _FIELDS or words[3] not in _SIGNS:
        raise BadLine(0, f"a matrix of type {' '.join(words)!r} is not supported", _SUPPORTED)
    return _FIELDS[words[2]], _SIGNS[words[3]]


def _check(path: Path, header: MatrixHeader, rows: Any, columns: Any) -> None:
    name = name_of(path)
    if len(rows) != header.num_entries:
        problem = f"it has {len(rows):,} entries, but its size line declares {header.num_entries:,}"
        raise EdgeFileError(name, None, problem, "Is it complete?")
    for ids in (rows, columns):
        if len(ids) and not (ids.min() >= 1 and ids.max() <= header.num_rows):
            problem = f"it has indices from {ids.min()} to {ids.max()}"
            advice = f"They must be from 1 to {header.num_rows:,}, the number of rows."
            raise EdgeFileError(name, None, problem, advice)
