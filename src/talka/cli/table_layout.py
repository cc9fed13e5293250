"""Where the cells of a table go if the terminal has this many columns.

The first layout that fits is taken:

1. one line per row, words at its end wrapped in their own column;
2. the same with the words below the row;
3. the same with a gap of one column;
4. numbers below the names, words below the numbers;
5. several tables, each with the names and as many numbers as fit.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len

_GAP: Final = "  "
_INDENT: Final = "  "
_MIN_PROSE_WIDTH: Final = 24


class Line(NamedTuple):
    text: str
    is_header: bool = False


class Table(NamedTuple):
    """Rows of cells: names first, numbers, then prose."""

    rows: Sequence[Mapping[str, str]]
    right: Sequence[str]
    """Columns aligned to the right."""
    prose: Sequence[str]
    """Columns that may be wrapped; the last ones."""

    @property
    def fixed(self) -> list[str]:
        return [name for name in self.rows[0] if name not in self.prose]

    @property
    def words(self) -> list[str]:
        return [name for name in self.rows[0] if name in self.prose]


def laid_out(table: Table, width: int) -> Iterator[Line]:
    """All lines of a table that has at least one row."""
    fixed, words = table.fixed, table.words
    for splits_headers in (False, True):
        columns = _columns(table, fixed, splits_headers=splits_headers)
        last = _prose_columns(table, width - _width(columns) - len(_GAP))
        if last is not None:
            yield from _rows(table, [*columns, *last])
            return
    for gap in (_GAP, " "):
        if _width(columns, gap) <= width:
            yield from _rows(table, columns, gap=gap, below=words, width=width)
            return
    names = [name for name in fixed if name not in table.right]
    numbers = _columns(table, [name for name in fixed if name in table.right], splits_headers=True)
    lead = _columns(table, names, splits_headers=True)
    if names and len(_INDENT) + _width(numbers) <= width:
        yield from _rows(table, lead, second=numbers, below=words, width=width)
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


def _columns(table: Table, names: Sequence[str], *, splits_headers: bool) -> list[_Column]:
    columns = []
    for name in names:
        widest = max(cell_len(row[name]) for row in table.rows)
        longest_word = max(map(cell_len, name.split()))
        header = _wrapped(name, max(widest, longest_word)) if splits_headers else [name]
        width = max(widest, *map(cell_len, header))
        columns.append(_Column(name, header, width, name in table.right))
    return columns


def _prose_columns(table: Table, width: int) -> list[_Column] | None:
    """Columns of words that fill this many columns; None if they do not fit well."""
    if not table.words:
        return [] if width + len(_GAP) >= 0 else None
    *others, last = _columns(table, table.words, splits_headers=False)
    left = width - sum(column.width + len(_GAP) for column in others)
    if left < min(last.width, _MIN_PROSE_WIDTH):
        return None
    return [*others, last._replace(width=min(last.width, left), wraps=True)]


def _width(columns: Sequence[_Column], gap: str = _GAP) -> int:
    return sum(column.width for column in columns) + len(gap) * max(len(columns) - 1, 0)


def _rows(
    table: Table,
    columns: Sequence[_Column],
    *,
    gap: str = _GAP,
    second: Sequence[_Column] = (),
    below: Sequence[str] = (),
    width: int = 0,
) -> Iterator[Line]:
    """A header and all rows; `second` is a line below each row, `below` are words below that."""
    for line in _aligned(columns, [column.header for column in columns], gap):
        yield Line(line, is_header=True)
    for line in _aligned(second, [column.header for column in second], _GAP):
        yield Line(_INDENT + line, is_header=True)
    for row in table.rows:
        yield from map(Line, _aligned(columns, _cells(row, columns), gap))
        for line in _aligned(second, _cells(row, second), _GAP):
            yield Line(_INDENT + line)
        for name in below:
            for line in _wrapped(row[name], max(width - len(_INDENT), _MIN_PROSE_WIDTH)):
                yield Line(_INDENT + line)


def _blocks(
    table: Table, lead: Sequence[_Column], numbers: Sequence[_Column], width: int
) -> Iterator[Line]:
    """Tables of the same rows, one after another."""
    left = list(numbers)
    while left:
        some = [left.pop(0)]
        while left and _width([*lead, *some, left[0]]) <= width:
            some.append(left.pop(0))
        below = table.words if not left else ()
        yield from _rows(table, [*lead, *some], below=below, width=width)
        if left:
            yield Line("")


def _cells(row: Mapping[str, str], columns: Sequence[_Column]) -> list[list[str]]:
    return [
        _wrapped(row[column.name], column.width) if column.wraps else [row[column.name]]
        for column in columns
    ]


def _aligned(columns: Sequence[_Column], cells: Sequence[Sequence[str]], gap: str) -> Iterator[str]:
    """Cells of several lines side by side."""
    for at in range(max(map(len, cells), default=0)):
        texts = []
        for column, lines in zip(columns, cells, strict=True):
            text = lines[at] if at < len(lines) else ""
            padding = " " * (column.width - cell_len(text))
            texts.append(padding + text if column.is_right else text + padding)
        yield gap.join(texts).rstrip()


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, 1), break_long_words=False, break_on_hyphens=False) or [
        ""
    ]
