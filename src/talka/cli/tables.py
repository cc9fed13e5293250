"""Tables for the terminal, wrapped text and JSON.

Cells are never truncated and only prose is wrapped, so names, paths and numbers can be copied from
any table. Cells that do not fit into the width of the terminal move below their row.
"""

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Final

_FILE_WIDTH: Final = 10_000
"""Width for output to a file: each row stays on one line."""


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
        Columns aligned to the right, such as numbers.
    prose
        Columns of text that may be wrapped; they must be the last ones.
    """
    from rich.console import Console
    from rich.text import Text

    from talka.cli.table_layout import TextTable, lay_out

    console = Console(highlight=False, markup=False, emoji=False, width=_FILE_WIDTH)
    if title is not None:
        console.print(Text(title, style="bold"), soft_wrap=True)
    if not rows:
        return
    cells = [{name: str(cell) for name, cell in row.items()} for row in rows]
    for line in lay_out(TextTable(cells, right=right, prose=prose), output_width()):
        style = "dim" if line.is_header else ""
        console.print(Text(line.text, style=style), soft_wrap=True)


def print_text(text: str) -> None:
    """Print sentences, wrapped between words to the width of the terminal."""
    for paragraph in text.splitlines():
        print(textwrap.fill(paragraph, output_width(), break_long_words=False,
                            break_on_hyphens=False))  # fmt: skip


def output_width() -> int:
    """Return the width of the terminal or COLUMNS; practically unlimited for a file."""
    if "COLUMNS" in os.environ or (sys.stdout is not None and sys.stdout.isatty()):
        return shutil.get_terminal_size().columns
    return _FILE_WIDTH
