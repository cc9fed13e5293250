"""Edges from MatrixMarket files: entry (row, column) of a square matrix is an edge from row to column.

The format is that of NIST (math.nist.gov/MatrixMarket/formats.html): a banner, comments, a line with
the numbers of rows, columns and entries, then a line for each entry, with indices from 1 on.
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
    commented_out,
    data_lines,
    line_of,
)
from talka.inputs import name_of

Entries = tuple[NDArray[Any], NDArray[Any], NDArray[np.float64] | None]
"""Rows, columns and values."""
_BANNER_LINE = re.compile(rb"%%MatrixMarket[ \t]+([^\r\n]*)", re.IGNORECASE)
_FIELDS = {"pattern": False, "real": True, "double": True, "integer": True}
"""Whether an entry has a value."""
_SIGNS = {"general": 0, "symmetric": 1, "skew-symmetric": -1}
"""Sign of the value on the other side of the diagonal; 0 where the file has both sides."""
_READ = (
    "Coordinate matrices are read: pattern, real or integer; general, symmetric or skew-symmetric."
)


def is_matrix(text: bytes) -> bool:
    """Whether a text begins with the banner, whatever its name says."""
    return _BANNER_LINE.match(text) is not None


def edges_of_matrix(path: Path, header: MatrixHeader, entries: Entries) -> Edges:
    """Every row is a vertex, called by its number; values are weights.

    A symmetric file has one side of the diagonal; its entries become edges in both directions, and
    one edge in an undirected graph.
    """
    rows, columns, weights = entries
    _check(path, header, rows, columns)
    if header.sign:
        apart = rows != columns
        rows, columns = (
            np.concatenate([rows, columns[apart]]),
            np.concatenate([columns, rows[apart]]),
        )
        if weights is not None:
            weights = np.concatenate([weights, header.sign * weights[apart]])
    vertices = np.arange(1, header.num_rows + 1, dtype=np.int64)
    return Edges(rows, columns, weights, vertices, twice=header.sign != 0)


def sniffed_matrix(text: bytes) -> tuple[LineForm, bytes]:
    """Read banner and size line, and make the latter a comment."""
    banner = _BANNER_LINE.match(text)
    if banner is None:
        problem = "it does not begin with the banner %%MatrixMarket"
        raise BadLine(0, problem, "Add it, or say what the file holds by its format.")
    has_values, sign = _meaning(banner[1].decode(errors="replace").lower().split())
    size = next(iter(data_lines(text)), None)
    if size is None:
        raise BadLine(0, "there is no line with the size of the matrix", "Is it complete?")
    if len(size.fields) != 3 or not all(field.isdigit() for field in size.fields):
        problem = "the size of the matrix is not three whole numbers: rows, columns, entries"
        raise BadLine(line_of(text, size), problem, "Mend the line.")
    header = MatrixHeader(has_values, sign, *(int(field) for field in size.fields))
    if header.num_rows != header.num_columns:
        problem = f"a matrix of {header.num_rows:,} x {header.num_columns:,} is not a graph"
        advice = "Give a square one: rows and columns are the same vertices."
        raise BadLine(line_of(text, size), problem, advice)
    text = commented_out(text, size)
    line = next((line_of(text, one) for one in itertools.islice(data_lines(text), 1)), 0)
    at = Places(0, 1, 2 if has_values else None)
    return LineForm(2 + has_values, has_strings=False, line=line, at=at, matrix=header), text


def _meaning(words: list[str]) -> tuple[bool, int]:
    """Whether there are values, and the sign of the other side of the diagonal."""
    is_known = len(words) == 4 and words[:2] == ["matrix", "coordinate"]
    if not is_known or words[2] not in _FIELDS or words[3] not in _SIGNS:
        raise BadLine(0, f"a matrix of the kind {' '.join(words)!r} is not read", _READ)
    return _FIELDS[words[2]], _SIGNS[words[3]]


def _check(path: Path, header: MatrixHeader, rows: Any, columns: Any) -> None:
    name = name_of(path)
    if len(rows) != header.num_entries:
        problem = f"it has {len(rows):,} entries, but says that there are {header.num_entries:,}"
        raise EdgeFileError(name, None, problem, "Is it complete?")
    for ids in (rows, columns):
        if len(ids) and not (ids.min() >= 1 and ids.max() <= header.num_rows):
            problem = f"it has indices from {ids.min()} to {ids.max()}"
            advice = f"They must be from 1 to {header.num_rows:,}, the number of rows."
            raise EdgeFileError(name, None, problem, advice)
