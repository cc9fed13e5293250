"""Edges from CSV and TSV files, which Arrow reads as tables, including quotes.

Only the first two rows are parsed in Python: they determine whether the first is a header, and the
types of columns. If a later row does not match, the error names its line.
"""

import csv
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv

from talka.errors import EdgeFileError, GraphError
from talka.events.stream import Stream
from talka.files.compressed import packing_of
from talka.graph.building.memory import check_it_fits
from talka.graph.reading.base import Edges
from talka.graph.reading.blocks import blocks, read_twice, size_of
from talka.graph.reading.fields import COMMENTS
from talka.graph.reading.names import described, is_header, is_number, places
from talka.graph.reading.tables import edges_from_table, no_edges

_WHOLE = re.compile(r"-?[0-9]+")
_ROW = re.compile(r"Row #(\d+): (.*)", re.DOTALL)


class TableForm(NamedTuple):
    """The layout of a CSV or TSV file."""

    delimiter: str
    num_comments: int
    """Number of comment lines before the first row."""
    has_header: bool
    types: dict[str, Any]
    """Arrow type of each column to read."""
    row_bytes: int
    """Bytes of one row, to estimate the number of rows."""
    notes: tuple[str, ...]


def read_csv(path: Path, events: Stream) -> Edges:
    return _read(path, ",", events)


def read_tsv(path: Path, events: Stream) -> Edges:
    return _read(path, "\t", events)


def _read(path: Path, delimiter: str, events: Stream) -> Edges:
    with events.phase("graph/read", total=size_of(path), unit="bytes") as phase:
        with read_twice(path) as readable:
            size = size_of(readable) or 0
            form = _sniff(readable, delimiter)
            if form is None:
                return Edges(np.empty(0, np.int64), np.empty(0, np.int64))
            check_it_fits(size / form.row_bytes, is_weighted=len(form.types) > 2, is_read=True)
            try:
                edges = edges_from_table(_table(readable, form))._replace(notes=form.notes)
            except GraphError as error:
                raise no_edges(readable, error) from error
        phase.advance(size)
    return edges


def _sniff(path: Path, delimiter: str) -> TableForm | None:
    """Return the layout that the first two rows show; None for an empty file."""
    start = next(blocks(path, lambda _: None)).decode(errors="replace")
    lines = [line for line in start.splitlines()[:1000] if line.strip()]
    comments = list(itertools.takewhile(lambda line: line.lstrip().startswith(_COMMENTS), lines))
    rows = list(itertools.islice(csv.reader(lines[len(comments) :], delimiter=delimiter), 2))
    if not rows:
        return None
    first, second = rows[0], rows[-1]
    if len(first) < 2:
        problem = f"{first[0]!r} is one field, but an edge needs two, source and target"
        raise EdgeFileError(str(path), _line_of_row(path, len(comments) + 1), problem, _ADVICE)
    has_header = is_header(first) or (not _are_whole(first[:2]) and _are_whole(second[:2]))
    if not has_header:
        second = first
    names = first if has_header else [f"f{place}" for place in range(len(first))]
    at = places(names, lambda place: place < len(second) and is_number(second[place]))
    ids = [second[place] for place in (at.source, at.target) if place < len(second)]
    kind = pa.int64() if _are_whole(ids) or (has_header and len(rows) == 1) else pa.string()
    types = {names[at.source]: kind, names[at.target]: kind}
    if at.weight is not None:
        types[names[at.weight]] = pa.float64()
    if len(types) < (2 if at.weight is None else 3):
        problem = f"two columns are named {names[at.source]!r}"
        line = _line_of_row(path, len(comments) + 1)
        raise EdgeFileError(str(path), line, problem, "Give every column a different name.")
    row_bytes = len(delimiter.join(second)) + 1
    notes = (described(names, at),) if has_header else ()
    return TableForm(delimiter, len(comments), has_header, types, row_bytes, notes)


def _table(path: Path, form: TableForm) -> Any:
    try:
        return _parsed(path, form, in_threads=True)
    except pa.ArrowInvalid:
        pass
    unsigned = {
        name: pa.uint64() if pa.types.is_integer(kind) else kind
        for name, kind in form.types.items()
    }
    for types in (unsigned, form.types):  # the second for its error message, which has the row
        try:
            return _parsed(path, form._replace(types=types), in_threads=False)
        except pa.ArrowInvalid as error:
            failure = error
    row = _ROW.search(str(failure))
    if row is None:
        raise no_edges(path, failure)
    line = _line_of_row(path, int(row[1]))
    raise EdgeFileError(str(path), line, row[2].removesuffix("\n"), _ADVICE) from failure


_ADVICE = "All rows must be like the first: fix or remove the line."
_COMMENTS = tuple(chr(byte) for byte in COMMENTS)


def _parsed(path: Path, form: TableForm, *, in_threads: bool) -> Any:
    with open(path, "rb") as file:
        packing = packing_of(file.read(8))
    return pyarrow.csv.read_csv(
        pa.input_stream(str(path), compression=packing),
        read_options=pyarrow.csv.ReadOptions(
            skip_rows=form.num_comments,
            autogenerate_column_names=not form.has_header,
            use_threads=in_threads,
        ),
        parse_options=pyarrow.csv.ParseOptions(delimiter=form.delimiter),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=form.types, include_columns=list(form.types), null_values=[]
        ),
    )


def _line_of_row(path: Path, row: int) -> int:
    """Return the line of a row of Arrow, which does not count empty lines."""
    filled = (number for number, line in enumerate(_lines(path), 1) if line.strip(b"\r\n"))
    return next(itertools.islice(filled, row - 1, None))


def _lines(path: Path) -> Iterator[bytes]:
    for block in blocks(path, lambda _: None):
        yield from block.splitlines()


def _are_whole(fields: list[str]) -> bool:
    return all(_WHOLE.fullmatch(field.strip()) for field in fields)
