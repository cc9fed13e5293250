"""Write the command reference: `python -m talka.cli.reference > docs/cli.md` (or `make docs`)."""

import contextlib
import os
from collections.abc import Iterator
from typing import Final

from talka.cli.main import build_parser
from talka.cli.options import FORMATS, MEANINGS
from talka.cli.parser import CommandParser

NAMES_IN_PYTHON: Final = {
    "--partitions P": "num_partitions=P",
    "--supersteps N": "num_supersteps=N",
    "--undirected": "directed=False",
    "--input-format NAME": "format=NAME",
    "--checkpoint-every N": "checkpoint_every=N",
    "--compressor NAME": "compressor=NAME",
    "column `similarity`": "similarity",
}
"""What the same thing is called on the command line and in Python."""


def reference() -> str:
    """Every command's help as one Markdown page."""
    parsers = list(_with_subcommands(build_parser()))
    parts = ["# The command line", "", "Written by `make docs`; a test holds it to the parser.", ""]
    parts += [*_vocabulary(parsers), *_names(), *_former_names()]
    with _terminal_of_100_columns():
        for parser in parsers:
            help_text = parser.format_help().rstrip()
            parts += [f"## `{parser.prog}`", "", "```text", help_text, "```", ""]
    return "\n".join(parts)


@contextlib.contextmanager
def _terminal_of_100_columns() -> Iterator[None]:
    """Let argparse wrap help to this width on every machine."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "100"
    try:
        yield
    finally:
        del os.environ["COLUMNS"]
        if before is not None:
            os.environ["COLUMNS"] = before


def _vocabulary(parsers: list[CommandParser]) -> list[str]:
    rows = [
        "## Options that commands share",
        "",
        "| option | meaning | commands |",
        "|---|---|---|",
    ]
    for name, meaning in MEANINGS.items():
        commands = [parser.prog for parser in parsers if name in parser.option_names()]
        short = ", ".join(f"`{prog.removeprefix('talka ')}`" for prog in commands)
        rows.append(f"| `{name}` | {meaning} | {short} |")
    formats = ", ".join(f"`{name}`" for name in FORMATS)
    return [
        *rows,
        "",
        f"Formats of the output are {formats}; each command takes those",
        "that make sense. `-` in place of an input file is standard input. Tables fit the width of the",
        "terminal (or `COLUMNS`); in a file each row is one line.",
        "",
    ]


def _names() -> list[str]:
    rows = [f"| {_code(option)} | `{name}` |" for option, name in NAMES_IN_PYTHON.items()]
    return ["## Names in Python", "", "| command line | Python |", "|---|---|", *rows, ""]


def _code(option: str) -> str:
    return option if "`" in option else f"`{option}`"


def _former_names() -> list[str]:
    return [
        "## Former names",
        "",
        "`--format text` (now `table`), `--format-of-file` (now `--input-format`) and `--spec` (now",
        "`--compressor`) still work, with a warning on standard error.",
        "",
    ]


def _with_subcommands(parser: CommandParser) -> Iterator[CommandParser]:
    yield parser
    for command in parser.commands():
        yield from _with_subcommands(command)


if __name__ == "__main__":
    print(reference(), end="")
