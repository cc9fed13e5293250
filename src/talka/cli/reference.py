"""Write the command reference: `python -m talka.cli.reference > docs/cli.md` (or `make docs`)."""

import argparse
import os
from collections.abc import Iterator

from talka.cli.main import build_parser


def reference() -> str:
    """Every command's help as one Markdown page."""
    os.environ["COLUMNS"] = "100"  # argparse wraps its help to the terminal's width
    parts = ["# The command line", "", "Written by `make docs`; a test holds it to the parser.", ""]
    for parser in _with_subcommands(build_parser()):
        parts += [f"## `{parser.prog}`", "", "```text", parser.format_help().rstrip(), "```", ""]
    return "\n".join(parts)


def _with_subcommands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                yield from _with_subcommands(subparser)


if __name__ == "__main__":
    print(reference(), end="")
