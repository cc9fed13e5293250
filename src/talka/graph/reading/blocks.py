"""Text files, compressed or not, as blocks of whole lines in bounded memory."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from talka.errors import EdgeFileError
from talka.files.compressed import DAMAGED, packing_of, unpacked
from talka.inputs import is_piped, name_of, open_input, repeatable
from talka.units import format_bytes

BLOCK_BYTES = 1 << 21  # its fields fit into the cache of a core
MAX_LINE_BYTES = 1 << 20  # two ids and a weight; a file with longer lines is not a list of edges
MAX_LONG_LINE_BYTES = 1 << 28  # 30 million neighbours of one vertex, in memory at once
_PIECE_BYTES = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def blocks(
    path: Path,
    advance: Callable[[float], None],
    *,
    block_bytes: int = BLOCK_BYTES,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[bytes]:
    """Yield blocks of lines, at least one, which may be empty; `advance` gets bytes read on disk.

    A line ends with LF, CR LF or CR. A line longer than `max_line_bytes` is an error: memory must
    not grow with a file that is not text.
    """
    held: list[bytes] = []
    held_bytes, open_bytes, is_first = 0, 0, True
    try:
        for piece in unpacked(_pieces(path, advance)):
            if is_first and piece:
                piece, is_first = piece.removeprefix(_BYTE_ORDER_MARK), False
            held.append(piece)
            held_bytes += len(piece)
            end = _last_line_end(piece)
            open_bytes = len(piece) - end + (0 if end else open_bytes)
            if open_bytes > max_line_bytes:
                raise _too_long(path, max_line_bytes)
            if held_bytes >= block_bytes and end:
                held[-1] = piece[:end]
                yield b"".join(held)
                held = [piece[end:]]
                held_bytes = len(held[0])
    except DAMAGED as error:
        advice = "Fetch it again, or decompress the intact part by hand."
        raise EdgeFileError(name_of(path), None, f"it is damaged ({error})", advice) from error
    yield b"".join(held)


def _last_line_end(piece: bytes) -> int:
    """Return the index after the last line end, 0 if there is none.

    A CR at the very end does not count, as an LF may follow in the next piece.
    """
    return piece.rfind(b"\n") + 1 or piece.rfind(b"\r", 0, -1) + 1


def _too_long(path: Path, max_line_bytes: int) -> EdgeFileError:
    problem = f"it has a line of more than {format_bytes(max_line_bytes)}"
    advice = "Is it text? Give one line per edge, or lists of neighbours with their format."
    return EdgeFileError(name_of(path), None, problem, advice)


def size_of(path: Path) -> int | None:
    """Return the bytes on disk, None for a pipe; raise an error if the file does not exist."""
    if is_piped(path):
        return None
    try:
        if path.is_dir():
            problem = "it is a folder"
            raise EdgeFileError(name_of(path), None, problem, "Give one file of edges.")
        return path.stat().st_size
    except OSError as error:
        raise unreadable(path, error) from error


@contextlib.contextmanager
def read_twice(path: Path) -> Iterator[Path]:
    """Yield a path that can be opened several times; errors name the original path."""

    def check(beginning: bytes) -> None:
        is_text = packing_of(beginning) is None
        if is_text and len(beginning) >= MAX_LINE_BYTES and not _last_line_end(beginning):
            raise _too_long(path, MAX_LINE_BYTES)

    with repeatable(path, check) as readable:
        try:
            yield readable
        except EdgeFileError as error:
            raise EdgeFileError(name_of(path), *error.args[1:]) from error


def unreadable(path: Path, error: OSError) -> EdgeFileError:
    problem = f"it cannot be read ({error.strerror or error})"
    return EdgeFileError(name_of(path), None, problem, "Check the path and its permissions.")


def _pieces(path: Path, advance: Callable[[float], None]) -> Iterator[bytes]:
    try:
        with open_input(path) as file:
            while piece := file.read(_PIECE_BYTES):
                advance(len(piece))
                yield piece
    except OSError as error:
        raise unreadable(path, error) from error
