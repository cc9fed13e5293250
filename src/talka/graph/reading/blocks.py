"""A text file, packed or not, as blocks of whole lines in bounded memory."""

from collections.abc import Callable, Iterator
from pathlib import Path

from talka.data.text.unpacking import DAMAGED, unpacked
from talka.errors import EdgeFileError

BLOCK_BYTES = 1 << 21  # a core's cache holds its fields
_PIECE_BYTES = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def blocks(
    path: Path, advance: Callable[[float], None], *, block_bytes: int = BLOCK_BYTES
) -> Iterator[bytes]:
    """At least one block, which may be empty; `advance` gets the bytes read, as they lie on disk."""
    held: list[bytes] = []
    held_bytes, is_first = 0, True
    try:
        for piece in unpacked(_pieces(path, advance)):
            if is_first and piece:
                piece, is_first = piece.removeprefix(_BYTE_ORDER_MARK), False
            held.append(piece)
            held_bytes += len(piece)
            end = piece.rfind(b"\n") + 1
            if held_bytes >= block_bytes and end:
                held[-1] = piece[:end]
                yield b"".join(held)
                held = [piece[end:]]
                held_bytes = len(held[0])
    except DAMAGED as error:
        advice = "Fetch it again, or unpack by hand what can be saved."
        raise EdgeFileError(str(path), None, f"it is damaged ({error})", advice) from error
    yield b"".join(held)


def size_of(path: Path) -> int:
    """Bytes on disk; an error where there is no such file."""
    if path.is_dir():
        problem = "it is a folder"
        raise EdgeFileError(str(path), None, problem, "Give one file of edges.")
    try:
        return path.stat().st_size
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> EdgeFileError:
    problem = f"it cannot be read ({error.strerror})"
    return EdgeFileError(str(path), None, problem, "Check the path and its permissions.")


def _pieces(path: Path, advance: Callable[[float], None]) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            while piece := file.read(_PIECE_BYTES):
                advance(len(piece))
                yield piece
    except OSError as error:
        raise unreadable(path, error) from error
