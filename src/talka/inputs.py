"""Input files, pipes and standard input of all commands.

`-` is standard input. A pipe (`<(command)`, `/dev/stdin`, a named pipe) can be read only once: code
that reads its input twice must use `repeatable`, and predictions must not read it at all.
"""

import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from talka.errors import InputError
from talka.files import UnnamedFile, temporary_folder, unnamed_file

STDIN = "-"
_PIECE_BYTES = 1 << 20


def name_of(path: Path | str) -> str:
    """Return the name of an input for messages.

    >>> name_of("-"), name_of(Path("edges.txt"))
    ('standard input', 'edges.txt')
    """
    return "standard input" if str(path) == STDIN else printable(str(path))


def printable(text: str) -> str:
    r"""Return text that any stream can print: bytes that are not UTF-8 are escaped.

    >>> printable("caf\udce9.txt")
    'caf\\xe9.txt'
    """
    return text.encode(errors="surrogateescape").decode(errors="backslashreplace")


def is_piped(path: Path | str) -> bool:
    """Return whether this is standard input, or exists and is neither a file nor a folder."""
    return str(path) == STDIN or (
        os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    )


@contextlib.contextmanager
def open_input(path: Path | str) -> Iterator[BinaryIO]:
    """Open a file, a pipe or standard input.

    Raises InputError for a terminal, where the command would wait without a message.
    """
    with _standard_input() if str(path) == STDIN else open(path, "rb") as file:
        if file.isatty():
            advice = "Redirect a file or a pipe to it, or give the name of a file."
            raise InputError(name_of(path), "is a terminal", advice)
        yield file


def _standard_input() -> contextlib.AbstractContextManager[BinaryIO]:
    if sys.stdin is None:
        raise InputError(name_of(STDIN), "is closed", "Redirect a file or a pipe to it.")
    return contextlib.nullcontext(sys.stdin.buffer)


@contextlib.contextmanager
def repeatable(
    path: Path | str, check: Callable[[bytes], None] = lambda beginning: None
) -> Iterator[Path]:
    """Yield a path that can be opened several times, by any library.

    A file keeps its path, or gets one in /proc if its name is not UTF-8. The content of a pipe is
    copied to an unnamed file in the temporary folder (see TMPDIR). Raises InputError for a device,
    as it may never end.

    Parameters
    ----------
    check
        Called with the first megabyte of a pipe, so that it can raise an error before the disk is
        full.
    """
    if not is_piped(path):
        with contextlib.ExitStack() as stack:
            if printable(str(path)) != str(path):
                descriptor = stack.enter_context(open(path, "rb")).fileno()
                path = f"/proc/self/fd/{descriptor}"
            yield Path(path)
        return
    if str(path) != STDIN and _is_device(path):
        raise InputError(name_of(path), "is a device", "Give the name of a file, or a pipe.")
    folder = temporary_folder()
    with contextlib.ExitStack() as stack:
        with _storing(path, folder):
            copy = stack.enter_context(UnnamedFile(unnamed_file(folder)))
        with open_input(path) as file:
            piece = file.read(_PIECE_BYTES)
            check(piece)
            end = 0
            while piece:
                with _storing(path, folder):
                    end = copy.write_at(piece, end)
                piece = file.read(_PIECE_BYTES)
        yield Path(f"/proc/self/fd/{copy.descriptor}")


def _is_device(path: Path | str) -> bool:
    mode = os.stat(path).st_mode
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode)


@contextlib.contextmanager
def _storing(path: Path | str, folder: Path) -> Iterator[None]:
    """Turn errors of the file system into an InputError about the copy of `path`."""
    try:
        yield
    except OSError as error:
        problem = f"cannot be copied to {folder} ({error.strerror or error})"
        advice = "Free space there, set TMPDIR to another folder, or give the name of a file."
        raise InputError(name_of(path), problem, advice) from error
