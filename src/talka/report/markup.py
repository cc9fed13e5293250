"""Functions that return small pieces of HTML. All text of a run passes through `escaped`."""

import html
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from talka.units import format_bytes, format_rate, format_seconds

MAX_VALUE_CHARACTERS = 200
LONG_CHARACTERS = 40  # more than fits beside a name in one line
MAX_TABLE_ROWS = 200
_MAX_SCALED = 1e100  # larger numbers are shown without a unit


class Column(NamedTuple):
    """Heading and style of a table column."""

    title: str
    kind: str = ""
    """A class of the style sheet: `number` is right-aligned, `long` may wrap."""


def escaped(text: object) -> str:
    """Escape text for HTML; lone surrogates, which UTF-8 cannot encode, become question marks."""
    return html.escape(str(text).encode("utf-8", "replace").decode())


def note(text: str) -> str:
    """Return a paragraph in the style of a note."""
    return f'<p class="note">{escaped(text)}</p>'


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose cells are HTML already."""
    head = "".join(f'<th class="{column.kind}">{escaped(column.title)}</th>' for column in columns)
    body = "".join(_row(columns, row) for row in rows)
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def _row(columns: Sequence[Column], row: Sequence[str]) -> str:
    cells = zip(columns, row, strict=True)
    inner = "".join(f'<td class="{column.kind}">{cell}</td>' for column, cell in cells)
    return f"<tr>{inner}</tr>"


def facts(title: str, values: Mapping[str, Any], *, rest_in: str) -> str:
    """Return a small table of names and values, such as a config.

    Beyond MAX_TABLE_ROWS rows, a note refers to the file `rest_in`.
    """
    rows = [(name, _value(name, value)) for name, value in _flat(values)]
    shown = "".join(
        f'<tr><th>{escaped(name)}</th><td class="{_kind(text)}">{escaped(text)}</td></tr>'
        for name, text in rows[:MAX_TABLE_ROWS]
    )
    num_left = len(rows) - MAX_TABLE_ROWS
    rest = note(f"{num_left} more in {rest_in}") if num_left > 0 else ""
    return f'<div class="facts"><h3>{escaped(title)}</h3><table>{shown}</table>{rest}</div>'


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _kind(text: str) -> str:
    return "long" if len(text) > LONG_CHARACTERS else ""


def _value(name: str, value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return format_by_name(name, value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE_CHARACTERS else f"{text[:MAX_VALUE_CHARACTERS]} …"


def format_by_name(name: str, value: int | float) -> str:
    """Format a number in the unit at the end of its name.

    >>> format_by_name("sent_bytes", 25_000_000), format_by_name("link.rate_bits_per_s", 1e8)
    ('25.0 MB', '100 Mbit/s')
    >>> (
    ...     format_by_name("train_s", 12.34),
    ...     format_by_name("loss", 0.1234567),
    ...     format_by_name("n", 50000),
    ... )
    ('12.3 s', '0.123457', '50,000')
    """
    if abs(value) > _MAX_SCALED:
        text = str(value)
        return text if len(text) <= LONG_CHARACTERS else f"{text[:LONG_CHARACTERS]} …"
    if math.isnan(value):
        return "nan"
    if name.endswith("bytes"):
        return format_bytes(value)
    if name.endswith("bits_per_s"):
        return format_rate(value)
    if name.endswith(("_s", "seconds")) and not name.endswith("_per_s"):
        return format_seconds(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if abs(value) >= 10_000 else str(value)
