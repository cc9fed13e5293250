"""Tables for a terminal, and the same rows as JSON.

Cells are never cut, and only text that is read as prose is wrapped: names, paths and numbers can
be copied from any table. What does not fit into the width of the terminal moves below its row.
"""

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Final

_FILE_WIDTH: Final = 10_000
"""A file has no width: each row stays on one line."""


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2))


def print_table(
    rows: Sequence[Mapping[str, Any]],
    *,
    title: str | None = None,
    right: Sequence[str] = (),
    prose: Sequence[str] = (),
) -> None:
    """Print rows as a table.

    right
        Columns that are aligned to the right: numbers.
    prose
        Columns of words, the last ones, which may be wrapped.
    """
    from rich.console import Console
    from rich.text import Text

    from talka.cli.table_layout import Table, laid_out

    console = Console(highlight=False, markup=False, emoji=False, width=_FILE_WIDTH)
    if title is not None:
        console.print(Text(title, style="bold"), soft_wrap=True)
    if not rows:
        return
    cells = [{name: str(cell) for name, cell in row.items()} for row in rows]
    for line in laid_out(Table(cells, right=right, prose=prose), output_width()):
        style = "dim" if line.is_header else ""
        console.print(Text(line.text, style=style), soft_wrap=True)


def print_text(text: str) -> None:
    """Print sentences, wrapped between words to the width of the terminal."""
    for paragraph in text.splitlines():
        print(textwrap.fill(paragraph, output_width(), break_long_words=False,
                            break_on_hyphens=False))  # fmt: skip


def output_width() -> int:
    """Columns of the terminal, or what COLUMNS says; a file has no width."""
    if "COLUMNS" in os.environ or (sys.stdout is not None and sys.stdout.isatty()):
        return shutil.get_terminal_size().columns
    return _FILE_WIDTH
