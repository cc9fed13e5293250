"""Entry point of `talka`: run a command and turn errors into one line and an exit code.

A command is one file in `commands` with `add_arguments(parser)` and `run(args) -> int`. Only the
file of the requested command is imported, and heavy imports belong inside `run`.
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
    "demo": "train word vectors on the documentation found on this machine (about a minute)",
    "embed": "train word vectors on your own text",
    "similar": "print the nearest neighbours of words",
    "analogy": "answer analogies: A is to B as C is to what?",
    "evaluate": "score word vectors on analogy and similarity files",
    "graph": "run PageRank, shortest paths, components and more on a file of edges",
    "train": "start a training script on several workers, as torchrun does",
    "explain": "predict what a training step or an exchange would cost",
    "lab": "run a command on several emulated hosts with slow links",
    "probe": "measure latency and rate between ranks",
    "profile": "measure what this machine can do, for predictions",
    "report": "write an HTML report of a run",
}
EXIT_CODES = """\
exit codes:
  0    success
  1    the job failed; the message gives the reason
  2    the input or an option is wrong; the message lists what is allowed
  70   a defect in talka; the message names the file with the traceback
       (TALKA_TRACEBACK=1 prints it instead)
  130  interrupted (Ctrl+C)
  143  terminated (SIGTERM)
"""


def build_parser(only: str | None = None) -> CommandParser:
    """Build the parser of the whole command line; docs/cli.md is generated from it.

    With `only`, all other commands have a name and a help line but no options.
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
    words = sys.argv[1:] if argv is None else argv
    command = " ".join(["talka", *(name for name in words[:1] if name in COMMANDS)])
    try:
        with _terminate_like_interrupt():
            print_any_text()
            args = build_parser(only=words[0] if words else "").parse_args(words)
            args.typed = tuple(words)
            code = int(args.run(args))
            if sys.stdout is not None:
                sys.stdout.flush()  # report a full disk here, not at interpreter exit
            return code
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # reported with an exit code
        return exit_code_of(command, error)


@contextlib.contextmanager
def _terminate_like_interrupt() -> Iterator[None]:
    """Let SIGTERM unwind the stack like Ctrl+C, so that every `with` block cleans up."""

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
