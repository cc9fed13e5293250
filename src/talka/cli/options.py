"""Options shared by several commands, each with one name, one meaning and one help text.

`MEANINGS` is also the table at the top of docs/cli.md.
"""

import argparse
import contextlib
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from talka.cli.numbers import Number, count

SHOWN: Final = "(default: %(default)s)"
TABLE: Final = "table"
FORMATS: Final = (TABLE, "json", "csv", "parquet", "arrow")
_FORMER_TABLE: Final = "text"

MEANINGS: Final = {
    "--format": "output format",
    "--input-format": "input format, if the file name does not show it",
    "--engine": "where tasks run: embedded (in this process), ray (a cluster started on this "
    "machine) or ray://HOST:PORT (a running cluster)",
    "--partitions": "number of partitions",
    "--threads": "number of threads (default: number of cores)",
    "--out": "output path",
    "--force": "replace existing output or an unfinished run",
    "--resume": "continue the unfinished run of this output",
    "--explain": "print the predicted cost and exit",
    "--runs": "folder for run directories",
}


def add_format(
    parser: argparse.ArgumentParser,
    formats: Sequence[str] = (TABLE, "json"),
    *,
    default: str | None = TABLE,
    note: str = SHOWN,
) -> None:
    """Add `--format`. The former name `text` for `table` is accepted with a warning."""
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
    """Accept the former name of an option, with a warning; help texts do not show it."""
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
    """Action of a renamed option: print a warning and run the action of the new name."""

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
        warn(f"{option_string} is deprecated, use {name}.")
        self._option(parser, namespace, values, name)


def _format(text: str) -> str:
    if text != _FORMER_TABLE:
        return text
    warn(f"--format {_FORMER_TABLE} is deprecated, use --format {TABLE}.")
    return TABLE


def warn(message: str) -> None:
    print(f"talka: warning: {message}", file=sys.stderr)


@contextlib.contextmanager
def hint_to_resume(args: argparse.Namespace, can_be_resumed: Callable[[], bool]) -> Iterator[None]:
    """Print the command that continues the job if Ctrl+C or SIGTERM interrupts the block."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        if can_be_resumed():
            name, command = args.typed[0], resuming_command(args.typed)
            print(f"talka {name}: to continue, run: {command}", file=sys.stderr)
        raise


def resuming_command(words: Sequence[str]) -> str:
    """Return the command line that continues the job started by these words.

    >>> resuming_command(["embed", "my text", "--out", "v"])
    "talka embed --resume 'my text' --out v"
    """
    name, *rest = words
    return shlex.join(["talka", name, "--resume", *(word for word in rest if word != "--resume")])
