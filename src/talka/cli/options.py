"""Options that several commands share: one name, one meaning and one help text each.

`MEANINGS` is also the table at the top of docs/cli.md.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from talka.cli.numbers import Number, count

SHOWN: Final = "(default: %(default)s)"
TABLE: Final = "table"
FORMATS: Final = (TABLE, "json", "csv", "parquet", "arrow")
_FORMER_TABLE: Final = "text"

MEANINGS: Final = {
    "--format": "form of the output",
    "--input-format": "format of the input if its name does not tell",
    "--engine": "where tasks run: embedded (in this process), ray (a cluster started on this "
    "machine) or ray://HOST:PORT (a running cluster, by its address)",
    "--partitions": "number of partitions of the data",
    "--threads": "number of threads (default: all cores)",
    "--out": "where the output goes",
    "--force": "replace the output, or its unfinished run, if it exists",
    "--resume": "continue the unfinished run of this output",
    "--explain": "show what it would cost and stop",
    "--runs": "folder for run directories",
}


def add_format(
    parser: argparse.ArgumentParser,
    formats: Sequence[str] = (TABLE, "json"),
    *,
    default: str | None = TABLE,
    note: str = SHOWN,
) -> None:
    """Add `--format`; `text`, the former name of `table`, is accepted with a warning."""
    parser.add_argument(
        "--format",
        choices=formats,
        type=_format,
        default=default,
        help=f"{MEANINGS['--format']} {note}",
    )


def add_input_format(parser: argparse.ArgumentParser, known: Sequence[str]) -> None:
    option = parser.add_argument(
        "--input-format",
        default="auto",
        metavar="NAME",
        help=f"{MEANINGS['--input-format']}: {', '.join(known)} {SHOWN}",
    )
    add_former_name(parser, "--format-of-file", option)


def add_engine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine", default="embedded", metavar="NAME", help=f"{MEANINGS['--engine']} {SHOWN}"
    )


def add_partitions(parser: argparse.ArgumentParser, *, note: str) -> None:
    parser.add_argument(
        "--partitions",
        action=Number,
        parse=count(),
        default="1",
        metavar="P",
        help=f"{MEANINGS['--partitions']}, {note} {SHOWN}",
    )


def add_threads(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--threads", action=Number, parse=count(), metavar="N", help=MEANINGS["--threads"]
    )


def add_out(
    parser: argparse.ArgumentParser, metavar: str, *, note: str, required: bool = False
) -> None:
    parser.add_argument(
        "--out", metavar=metavar, type=Path, required=required, help=f"{MEANINGS['--out']}{note}"
    )


def add_explain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--explain", action="store_true", help=MEANINGS["--explain"])


def add_resume_and_force(parser: argparse.ArgumentParser) -> None:
    for name in ("--resume", "--force"):
        parser.add_argument(name, action="store_true", help=MEANINGS[name])


def add_runs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--runs",
        type=Path,
        default=Path("runs"),
        metavar="DIR",
        help=f"{MEANINGS['--runs']} {SHOWN}",
    )


def add_former_name(parser: argparse.ArgumentParser, former: str, option: argparse.Action) -> None:
    """Accept the former name of an option, with a warning; no help mentions it."""
    parser.add_argument(
        former,
        action=_FormerName,
        option=option,
        dest=option.dest,
        nargs=option.nargs,
        default=argparse.SUPPRESS,
        help=argparse.SUPPRESS,
    )


class _FormerName(argparse.Action):
    """Does what the option does that now has another name."""

    def __init__(self, *args: Any, option: argparse.Action, **options: Any) -> None:
        super().__init__(*args, **options)
        self._option = option

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        name = self._option.option_strings[0]
        warn(f"{option_string} is deprecated: it is now called {name}.")
        self._option(parser, namespace, values, name)


def _format(text: str) -> str:
    if text != _FORMER_TABLE:
        return text
    warn(f"--format {_FORMER_TABLE} is deprecated: it is now called {TABLE}.")
    return TABLE


def warn(message: str) -> None:
    print(f"talka: warning: {message}", file=sys.stderr)
