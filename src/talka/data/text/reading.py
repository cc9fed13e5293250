"""Text from files, folders or standard input as chunks of valid UTF-8, in bounded memory.

files, folders, standard input -> bytes -> decompressed -> split at line ends -> repaired

A chunk ends at a line end if possible, otherwise at white space, otherwise (a megabyte without
either) between two characters. A line may therefore continue in the next chunk; only `ends_file`
marks its end.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from talka.data.text.resources import Advance, ignore_progress
from talka.errors import CorpusError
from talka.files.compressed import DAMAGED, unpacked
from talka.inputs import STDIN, open_input

CHUNK_BYTES = 1 << 20
_PIECE_BYTES = 1 << 17
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MAX_REPLACED_SHARE = 0.3  # other encodings and random bytes exceed it, stray bytes do not


class Chunk(NamedTuple):
    """A piece of text."""

    text: bytes
    """Valid UTF-8 without NUL."""

    ends_file: bool


class TextReader:
    """Reader of files, folders and standard input (`-`).

    Files are located when it is created, so that a missing one is reported before any work. Gzip
    and zstd are detected by the first bytes of a file, not by its name. Files of a folder are read
    in the order of their paths, without hidden files.
    """

    def __init__(self, paths: Sequence[str | Path], *, chunk_bytes: int = CHUNK_BYTES) -> None:
        self.sources = [source for path in paths for source in _sources(str(path))]
        self.num_replaced: dict[str, int] = {}
        """Number of invalid UTF-8 sequences replaced by U+FFFD, by source."""
        self._chunk_bytes = chunk_bytes

    @property
    def total_bytes(self) -> int | None:
        """Bytes to read from disk; None if a source cannot be read a second time."""
        if STDIN in self.sources or not all(Path(source).is_file() for source in self.sources):
            return None  # standard input or a pipe, such as <(command) in a shell
        return sum(Path(source).stat().st_size for source in self.sources)

    def chunks(self, advance: Advance = ignore_progress) -> Iterator[Chunk]:
        """Yield all text in order; `advance` is called with the number of bytes read from disk."""
        for source in self.sources:
            pieces = unpacked(_pieces(source, advance))
            try:
                for chunk in _split(pieces, self._chunk_bytes):
                    yield Chunk(self._clean(chunk.text, source), chunk.ends_file)
            except DAMAGED as error:
                advice = "Download it again, or decompress the readable part by hand."
                raise CorpusError(source, f"is damaged ({error})", advice) from error

    def _clean(self, text: bytes, source: str) -> bytes:
        if b"\0" in text:
            advice = "Use UTF-8 text; UTF-16 can be converted with `iconv -f UTF-16 -t UTF-8`."
            raise CorpusError(source, "contains NUL bytes, so it is not UTF-8 text", advice)
        try:
            text.decode()
        except UnicodeDecodeError:
            return self._repair(text, source)
        return text

    def _repair(self, text: bytes, source: str) -> bytes:
        """Replace invalid sequences by U+FFFD; raise CorpusError if there are too many."""
        repaired = text.decode(errors="replace")
        num_replaced = repaired.count("\N{REPLACEMENT CHARACTER}") - text.count(b"\xef\xbf\xbd")
        if num_replaced > _MAX_REPLACED_SHARE * len(text):
            problem = f"is not UTF-8 text ({num_replaced} invalid sequences in {len(text)} bytes)"
            advice = "Is it an image or an archive? Other encodings can be converted with iconv."
            raise CorpusError(source, problem, advice)
        self.num_replaced[source] = self.num_replaced.get(source, 0) + num_replaced
        return repaired.encode()


def _sources(path: str) -> list[str]:
    if path == STDIN:
        return [STDIN]
    root = Path(path)
    try:
        exists = root.exists()
    except OSError as error:  # a name that is too long, or a folder without permission
        raise _unreadable(path, error) from error
    if not exists:
        raise CorpusError(path, "does not exist", "Check the path.")
    if not root.is_dir():
        return [path]
    inside = (entry for entry in root.rglob("*") if entry.is_file())
    files = sorted(file for file in inside if not _is_hidden(file.relative_to(root)))
    if not files:
        raise CorpusError(path, "is a folder without files", "Use a folder that contains text.")
    return [str(file) for file in files]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _pieces(source: str, advance: Advance) -> Iterator[bytes]:
    try:
        with open_input(source) as file:
            while piece := file.read(_PIECE_BYTES):
                advance(len(piece))
                yield piece
    except OSError as error:
        raise _unreadable(source, error) from error


def _unreadable(source: str, error: OSError) -> CorpusError:
    return CorpusError(source, f"cannot be read ({error.strerror})", "Check its permissions.")


def _split(pieces: Iterator[bytes], chunk_bytes: int) -> Iterator[Chunk]:
    pieces = filter(None, pieces)
    buffer = bytearray(next(pieces, b"").removeprefix(_BYTE_ORDER_MARK))
    while True:
        while len(buffer) > chunk_bytes:
            end = _chunk_end(buffer, chunk_bytes)
            yield Chunk(bytes(buffer[:end]), ends_file=False)
            del buffer[:end]
        piece = next(pieces, None)
        if piece is None:
            break
        buffer += piece
    yield Chunk(bytes(buffer), ends_file=True)


def _chunk_end(text: bytearray, chunk_bytes: int) -> int:
    """Return the end of the chunk at the start of `text`, independent of how it was read."""
    for ends in ((b"\n", b"\r"), (b" ", b"\t")):
        end = max(text.rfind(byte, 0, chunk_bytes) for byte in ends) + 1
        if end:
            return end
    for end in range(chunk_bytes, max(0, chunk_bytes - 4), -1):
        if text[end] & 0xC0 != 0x80:  # the first byte of a character
            return end
    return chunk_bytes
