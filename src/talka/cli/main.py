"""`talka`: find the command, run it, turn errors into one line and an exit code.

A command is one file in this folder with two names, `add_arguments(parser)` and `run(args) -> int`. Only
the file of the command that was typed is imported, and heavy imports belong inside `run`.
"""

import contextlib
import importlib
import signal
import sys
from collections.abc import Iterator, Sequence
from types import FrameType, ModuleType

from talka import __version__
from talka.cli.failures import exit_code_of, print_any_text
from talka.cli.parser import CommandParser

COMMANDS = {
    "demo": "word vectors from the documentation on this machine, about a minute",
    "embed": "word vectors from raw text",
    "similar": "nearest neighbours of words in embeddings",
    "analogy": "a is to b as c is to what, by embeddings",
    "evaluate": "judge embeddings by analogy and similarity files",
    "graph": "pagerank, shortest paths, components and more over a file of edges",
    "explain": "what a job would cost, before it runs",
    "lab": "several hosts on this machine, each behind a slow link",
    "probe": "latency and rate between ranks, measured",
    "report": "one HTML page about a run, with plots",
}
EXIT_CODES = """\
exit codes:
  0    the job is done
  1    the job failed; the message says why
  2    the input or an option is wrong; the message says what is allowed
  70   a defect in talka; the message says where its traceback is (TALKA_TRACEBACK=1 prints it)
  130  interrupted (Ctrl+C)
  143  terminated (SIGTERM)
"""


def build_parser(only: str | None = None) -> CommandParser:
    """Build the parser of the whole command line; docs/cli.md is written from it.

    With `only`, other commands than that one have a name and a line in the help, but no options.
    """
    parser = CommandParser(
        prog="talka",
        description="Many ordinary machines, one job, little talk.",
        epilog=EXIT_CODES,
    )
    version = f"talka {__version__}"
    parser.add_argument(
        "-V", "--version", action="version", version=version, help="show the version and exit"
    )
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, purpose in COMMANDS.items():
        command = subparsers.add_parser(name, help=purpose)
        if only in (None, name):
            module = _module(name)
            command.description = module.__doc__
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if argv is None else argv
    command = " ".join(["talka", *(name for name in given[:1] if name in COMMANDS)])
    try:
        with _terminate_like_interrupt():
            print_any_text()
            args = build_parser(only=given[0] if given else "").parse_args(given)
            args.typed = tuple(given)
            code = int(args.run(args))
            if sys.stdout is not None:
                sys.stdout.flush()  # a full disk shows here, not at the end of the process
            return code
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # the last resort
        return exit_code_of(command, error)


@contextlib.contextmanager
def _terminate_like_interrupt() -> Iterator[None]:
    """SIGTERM unwinds the stack as Ctrl+C does, so that every `with` cleans up."""

    def unwind(signum: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + signum)

    before = signal.signal(signal.SIGTERM, unwind)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"talka.cli.commands.{name}")


if __name__ == "__main__":
    sys.exit(main())
