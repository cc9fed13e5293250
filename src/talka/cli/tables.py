"""Tables for a terminal, and the same rows as JSON."""

import json
from collections.abc import Mapping, Sequence
from typing import Any


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2))


def print_table(
    rows: Sequence[Mapping[str, Any]], *, title: str | None = None, right: Sequence[str] = ()
) -> None:
    """Print rows as a table; columns named in `right` are aligned to the right."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in rows[0] if rows else ():
        table.add_column(column, justify="right" if column in right else "left")
    for row in rows:
        table.add_row(*(str(cell) for cell in row.values()))
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = 200  # nobody resizes a file: never wrap or cut what a program may read
    if title is not None:
        console.print(title, style="bold")
    console.print(table)
