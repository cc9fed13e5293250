"""What a person types to continue a job that was interrupted."""

import argparse
import contextlib
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence


@contextlib.contextmanager
def hint_to_resume(args: argparse.Namespace, can_be_resumed: Callable[[], bool]) -> Iterator[None]:
    """Print the command that continues the job if Ctrl+C or SIGTERM ends what is inside."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        if can_be_resumed():
            name, command = args.typed[0], resuming_command(args.typed)
            print(f"talka {name}: to continue, run: {command}", file=sys.stderr)
        raise


def resuming_command(words: Sequence[str]) -> str:
    """The command line that continues what these words started.

    >>> resuming_command(["embed", "my text", "--out", "v"])
    "talka embed --resume 'my text' --out v"
    """
    name, *rest = words
    return shlex.join(["talka", name, "--resume", *(word for word in rest if word != "--resume")])
