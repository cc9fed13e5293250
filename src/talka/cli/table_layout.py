"""Layout of table cells for a terminal of a given width.

The first layout that fits is used:

1. one line per row, with prose wrapped in its own columns at the end;
2. the same with the prose below the row;
3. the same with a gap of one character between columns;
4. numbers below the names, prose below the numbers;
5. several tables, each with the names and as many number columns as fit.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len

_GAP: Final = "  "
_INDENT: Final = "  "
_MIN_PROSE_WIDTH: Final = 24


class TableLine(NamedTuple):
    """One line of output."""

    text: str
    is_header: bool = False


class TextTable(NamedTuple):
    """Rows of cells: names first, then numbers, then prose."""

    rows: Sequence[Mapping[str, str]]
    right: Sequence[str]
    """Columns aligned to the right."""
    prose: Sequence[str]
    """Columns of text that may be wrapped; the last ones."""

    @property
    def fixed(self) -> list[str]:
        """Names of the columns that are never wrapped."""
        return [name for name in self.rows[0] if name not in self.prose]

    @property
    def wrapped(self) -> list[str]:
        """Names of the columns that may be wrapped."""
        return [name for name in self.rows[0] if name in self.prose]


def lay_out(table: TextTable, width: int) -> Iterator[TableLine]:
    """Yield all lines of a table, which must have at least one row."""
    fixed, wrapped = table.fixed, table.wrapped
    for splits_headers in (False, True):
        columns = _columns(table, fixed, splits_headers=splits_headers)
        last = _prose_columns(table, width - _width(columns) - len(_GAP))
        if last is not None:
            yield from _rows(table, [*columns, *last])
            return
    for gap in (_GAP, " "):
        if _width(columns, gap) <= width:
            yield from _rows(table, columns, gap=gap, below=wrapped, width=width)
            return
    names = [name for name in fixed if name not in table.right]
    numbers = _columns(table, [name for name in fixed if name in table.right], splits_headers=True)
    lead = _columns(table, names, splits_headers=True)
    if names and len(_INDENT) + _width(numbers) <= width:
        yield from _rows(table, lead, second=numbers, below=wrapped, width=width)
        return
    lead = lead or _columns(table, fixed[:1], splits_headers=True)
    rest = [column for column in numbers if column.name != lead[0].name]
    yield from _blocks(table, lead, rest, width)


class _Column(NamedTuple):
    name: str
    header: list[str]
    width: int
    is_right: bool = False
    wraps: bool = False


def _columns(table: TextTable, names: Sequence[str], *, splits_headers: bool) -> list[_Column]:
    columns = []
    for name in names:
        widest = max(cell_len(row[name]) for row in table.rows)
        longest_word = max(map(cell_len, name.split()))
        header = _wrap(name, max(widest, longest_word)) if splits_headers else [name]
        width = max(widest, *map(cell_len, header))
        columns.append(_Column(name, header, width, name in table.right))
    return columns


def _prose_columns(table: TextTable, width: int) -> list[_Column] | None:
    """Return prose columns that fill `width` characters; None if that would be too narrow."""
    if not table.wrapped:
        return [] if width + len(_GAP) >= 0 else None
    *others, last = _columns(table, table.wrapped, splits_headers=False)
    left = width - sum(column.width + len(_GAP) for column in others)
    if left < min(last.width, _MIN_PROSE_WIDTH):
        return None
    return [*others, last._replace(width=min(last.width, left), wraps=True)]


def _width(columns: Sequence[_Column], gap: str = _GAP) -> int:
    return sum(column.width for column in columns) + len(gap) * max(len(columns) - 1, 0)


def _rows(
    table: TextTable,
    columns: Sequence[_Column],
    *,
    gap: str = _GAP,
    second: Sequence[_Column] = (),
    below: Sequence[str] = (),
    width: int = 0,
) -> Iterator[TableLine]:
    """Yield a header and all rows.

    `second` are columns of a second line below each row, `below` prose columns below that.
    """
    for line in _aligned(columns, [column.header for column in columns], gap):
        yield TableLine(line, is_header=True)
    for line in _aligned(second, [column.header for column in second], _GAP):
        yield TableLine(_INDENT + line, is_header=True)
    for row in table.rows:
        yield from map(TableLine, _aligned(columns, _cells(row, columns), gap))
        for line in _aligned(second, _cells(row, second), _GAP):
            yield TableLine(_INDENT + line)
        for name in [name for name in below if row[name]]:
            for line in _wrap(row[name], max(width - len(_INDENT), _MIN_PROSE_WIDTH)):
                yield TableLine(_INDENT + line)


def _blocks(
    table: TextTable, lead: Sequence[_Column], numbers: Sequence[_Column], width: int
) -> Iterator[TableLine]:
    """Yield tables of the same rows one after another, each with as many columns as fit."""
    remaining = list(numbers)
    while remaining:
        fitting = [remaining.pop(0)]
        while remaining and _width([*lead, *fitting, remaining[0]]) <= width:
            fitting.append(remaining.pop(0))
        below = table.wrapped if not remaining else ()
        yield from _rows(table, [*lead, *fitting], below=below, width=width)
        if remaining:
            yield TableLine("")


def _cells(row: Mapping[str, str], columns: Sequence[_Column]) -> list[list[str]]:
    return [
        _wrap(row[column.name], column.width) if column.wraps else [row[column.name]]
        for column in columns
    ]


def _aligned(columns: Sequence[_Column], cells: Sequence[Sequence[str]], gap: str) -> Iterator[str]:
    """Yield the lines of cells side by side; a cell may have several lines."""
    for index in range(max(map(len, cells), default=0)):
        texts = []
        for column, lines in zip(columns, cells, strict=True):
            text = lines[index] if index < len(lines) else ""
            padding = " " * (column.width - cell_len(text))
            texts.append(padding + text if column.is_right else text + padding)
        yield gap.join(texts).rstrip()


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, 1), break_long_words=False, break_on_hyphens=False) or [
        ""
    ]
