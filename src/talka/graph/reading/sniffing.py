"""Detect the form of all lines of a text from the first ones.

They determine whether ids are integers or strings, how many fields a line has, whether the first
line is a header, and which columns are the ends and the weight. All other lines must match.
"""

import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

from talka.graph.reading.fields import COMMENTS, GAPS, BadLine
from talka.graph.reading.names import Places, described, is_header, is_number, places, unquoted

_LINE = re.compile(rb"[^\r\n]+")
_LINE_END = re.compile(rb"\r\n|\r|\n")
_GAP = re.compile(b"[" + GAPS + b"]+")
_WHOLE = re.compile(rb"-?[0-9]+")
_MAX_COUNTS = 4  # METIS has n, m, fmt and ncon
_MAX_DIGITS = 18  # longer numbers cannot be numbers of vertices or edges


class MatrixHeader(NamedTuple):
    """The banner and the size line of a MatrixMarket file."""

    has_values: bool
    sign: int
    """Sign of the value on the other side of the diagonal; 0 if the file has both sides."""
    num_rows: int
    num_columns: int
    num_entries: int


class LineForm(NamedTuple):
    """The form of the lines of a file."""

    num_fields: int
    has_strings: bool
    line: int = 0
    """Number of the first line that is an edge, counted from 0."""
    at: Places = Places(0, 1, None)
    notes: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    """Integers of the first line if they may be numbers of vertices and edges (`counts.py`)."""
    counts_line: int = 0
    has_counts: bool = False
    """True if the first line cannot be an edge, because it has one field less than the others."""
    matrix: MatrixHeader | None = None


class TextLine(NamedTuple):
    """A line that is neither empty nor a comment."""

    at: int
    """Index in the text at which the first field begins."""
    fields: list[bytes]
    has_gap: bool
    """True if a comma or tab precedes the first field: then the first name is empty."""


def sniff_lines(text: bytes) -> tuple[LineForm, bytes]:
    """Return the form of lines, and the text with a header turned into a comment.

    Ids are integers if those of the second line are, or of the only one. The first line is a header
    if its ids are not integers and those of the second are, or if it has the names of columns of
    edges.
    """
    lines = list(itertools.islice(data_lines(text), 2))
    if not lines:
        return LineForm(2, has_strings=False), text
    first = lines[0]
    if _is_header(lines):
        text = comment_out(text, first)
        if len(lines) == 1:
            return LineForm(len(first.fields), has_strings=False), text
        first = lines[1]
    has_strings = not _are_whole(first.fields[:2])
    line = line_of(text, first)
    form = LineForm(len(first.fields), has_strings, line, counts_line=line)
    return form._replace(counts=_counts(first) if first is lines[0] else ()), text


def sniff_edges(text: bytes) -> tuple[LineForm, bytes]:
    """Do the same for lines that are edges; also detect source, target and weight."""
    lines = list(itertools.islice(data_lines(text), 2))
    form, text = sniff_lines(text)
    if not lines:
        return form, text
    if _is_header(lines):
        return _with_names(form, lines), text
    form = form._replace(at=Places(0, 1, 2 if form.num_fields > 2 else None))
    return _with_counts(form, text, lines)


def _with_names(form: LineForm, lines: list[TextLine]) -> LineForm:
    """Choose columns by the names in the header."""
    if len(lines) == 1:
        return form
    names, fields = _names(lines), lines[1].fields
    if len(names) < len(fields):
        problem = f"the line has {len(fields)} fields, but the header has {len(names)} names"
        raise BadLine(form.line, problem, "Name every column, or make the header a comment (#).")
    at = places(names[: len(fields)], lambda place: is_number(fields[place]))
    has_strings = not _are_whole([fields[at.source], fields[at.target]])
    note = described(names, at)
    return form._replace(has_strings=has_strings, at=at, notes=(note,))


def _with_counts(form: LineForm, text: bytes, lines: list[TextLine]) -> tuple[LineForm, bytes]:
    """Keep the integers of the first line if it may be `vertices edges` and not an edge."""
    first, second = lines[0], lines[-1]
    if len(lines) < 2 or len(form.counts) not in (2, 3):
        return form._replace(counts=()), text
    if len(form.counts) == 2 and len(second.fields) == 3 and is_number(second.fields[2]):
        has_strings = not _are_whole(second.fields[:2])
        form = form._replace(num_fields=3, has_strings=has_strings, at=Places(0, 1, 2))
        form = form._replace(line=line_of(text, second), has_counts=True)
        return form, comment_out(text, first)
    return form, text


def data_lines(text: bytes) -> Iterator[TextLine]:
    """Yield the lines that are neither empty nor comments."""
    for line in _LINE.finditer(text):
        fields = [field for field in _GAP.split(line[0]) if field]
        if fields and fields[0][0] not in COMMENTS:
            before = line[0].index(fields[0])
            gap = line[0][:before]
            yield TextLine(line.start() + before, fields, b"," in gap or b"\t" in gap)


def comment_out(text: bytes, line: TextLine) -> bytes:
    """Turn a line into a comment, so that the other lines keep their numbers."""
    return text[: line.at] + COMMENTS[:1] + text[line.at + 1 :]


def line_of(text: bytes, line: TextLine) -> int:
    """Return the number of a line, counted from 0."""
    return sum(1 for _ in _LINE_END.finditer(text, 0, line.at))


def _is_header(lines: list[TextLine]) -> bool:
    first, second = lines[0].fields, lines[-1].fields
    if is_header(_names(lines)):
        return True
    return len(lines) > 1 and not _are_whole(first[:2]) and _are_whole(second[:2])


def _names(lines: list[TextLine]) -> list[str]:
    """Return the fields of the first line as names.

    The first name is empty if the line begins with a comma or tab and the next has a field more.
    """
    first, second = lines[0], lines[-1]
    names = [unquoted(field.decode(errors="replace")) for field in first.fields]
    has_index = first.has_gap and len(second.fields) == len(names) + 1
    return ["", *names] if has_index else names


def _are_whole(fields: list[bytes]) -> bool:
    return all(_WHOLE.fullmatch(field) for field in fields)


def _counts(line: TextLine) -> tuple[int, ...]:
    is_short = 2 <= len(line.fields) <= _MAX_COUNTS
    if is_short and all(field.isdigit() and len(field) <= _MAX_DIGITS for field in line.fields):
        return tuple(int(field) for field in line.fields)
    return ()
