"""Text from anywhere as chunks of clean UTF-8, in bounded memory.

files, folders, standard input -> pieces of bytes -> unpacked -> cut at line ends -> mended

A chunk ends at a line end where it can, else at white space, else (a megabyte without either)
between two characters. So a line may go on in the next chunk; only `ends_file` closes it for sure.
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
_MAX_REPLACED_SHARE = 0.3  # other encodings and random bytes are above it, slips far below


class Chunk(NamedTuple):
    text: bytes
    """Valid UTF-8 without NUL."""

    ends_file: bool


class TextReader:
    """Finds the files at once, so that a missing one is known before any work; reads them later.

    A file counts as gzip or zstd by its first bytes, not by its name. Folders are read in the
    order of their paths, without hidden files; `-` is standard input.
    """

    def __init__(self, paths: Sequence[str | Path], *, chunk_bytes: int = CHUNK_BYTES) -> None:
        self.sources = [source for path in paths for source in _sources(str(path))]
        self.num_replaced: dict[str, int] = {}
        """By source: how many places were no UTF-8 and became U+FFFD."""
        self._chunk_bytes = chunk_bytes

    @property
    def total_bytes(self) -> int | None:
        """Bytes to read, as they lie on disk; None where not all can be read a second time."""
        if STDIN in self.sources or not all(Path(source).is_file() for source in self.sources):
            return None  # also a pipe, as the shell makes it of <(command)
        return sum(Path(source).stat().st_size for source in self.sources)

    def chunks(self, advance: Advance = ignore_progress) -> Iterator[Chunk]:
        """All text in order; `advance` gets the bytes read, as they lie on disk."""
        for source in self.sources:
            pieces = unpacked(_pieces(source, advance))
            try:
                for chunk in _cut(pieces, self._chunk_bytes):
                    yield Chunk(self._clean(chunk.text, source), chunk.ends_file)
            except DAMAGED as error:
                advice = "Fetch it again, or unpack by hand what can be saved."
                raise CorpusError(source, f"is damaged ({error})", advice) from error

    def _clean(self, text: bytes, source: str) -> bytes:
        if b"\0" in text:
            advice = "Give UTF-8 text; UTF-16 can be converted with `iconv -f UTF-16 -t UTF-8`."
            raise CorpusError(source, "holds NUL bytes, so it is no UTF-8 text", advice)
        try:
            text.decode()
        except UnicodeDecodeError:
            return self._mended(text, source)
        return text

    def _mended(self, text: bytes, source: str) -> bytes:
        mended = text.decode(errors="replace")
        replaced = mended.count("\N{REPLACEMENT CHARACTER}") - text.count(b"\xef\xbf\xbd")
        if replaced > _MAX_REPLACED_SHARE * len(text):
            problem = f"is no UTF-8 text ({replaced} places in {len(text)} bytes are invalid)"
            advice = "Is it a picture or an archive? Another encoding can be converted with iconv."
            raise CorpusError(source, problem, advice)
        self.num_replaced[source] = self.num_replaced.get(source, 0) + replaced
        return mended.encode()


def _sources(path: str) -> list[str]:
    if path == STDIN:
        return [STDIN]
    where = Path(path)
    try:
        exists = where.exists()
    except OSError as error:  # a name that is too long, a folder that may not be entered
        raise _unreadable(path, error) from error
    if not exists:
        raise CorpusError(path, "does not exist", "Check the path.")
    if not where.is_dir():
        return [path]
    inside = (entry for entry in where.rglob("*") if entry.is_file())
    found = sorted(file for file in inside if not _is_hidden(file.relative_to(where)))
    if not found:
        raise CorpusError(path, "is a folder without files", "Give a folder with text in it.")
    return [str(file) for file in found]


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


def _cut(pieces: Iterator[bytes], chunk_bytes: int) -> Iterator[Chunk]:
    pieces = filter(None, pieces)
    held = bytearray(next(pieces, b"").removeprefix(_BYTE_ORDER_MARK))
    while True:
        while len(held) > chunk_bytes:
            end = _chunk_end(held, chunk_bytes)
            yield Chunk(bytes(held[:end]), ends_file=False)
            del held[:end]
        piece = next(pieces, None)
        if piece is None:
            break
        held += piece
    yield Chunk(bytes(held), ends_file=True)


def _chunk_end(text: bytearray, chunk_bytes: int) -> int:
    """Where the chunk at the beginning of `text` ends; the same however the text came in."""
    for ends in ((b"\n", b"\r"), (b" ", b"\t")):
        end = max(text.rfind(byte, 0, chunk_bytes) for byte in ends) + 1
        if end:
            return end
    for end in range(chunk_bytes, max(0, chunk_bytes - 4), -1):
        if text[end] & 0xC0 != 0x80:  # the first byte of a character
            return end
    return chunk_bytes
