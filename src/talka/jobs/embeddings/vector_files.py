"""Files of word vectors: Arrow for talka, text for other programs.

The text format is that of GloVe's program, `word v1 v2 ...` per line; with a first line
`num_words dim` it is word2vec's format. Both can be read, also by gensim's KeyedVectors.
"""

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from talka.errors import TalkaError, output_error
from talka.files import whole_file

ARROW_NAME, TEXT_NAME = "vectors.arrow", "vectors.txt"


class StoredVectors(NamedTuple):
    """The content of a file of word vectors."""

    words: Sequence[str]
    vectors: NDArray[np.float32]
    """One row per word."""
    counts: NDArray[np.int64] | None
    """Occurrences of each word; None if unknown."""

    @property
    def dim(self) -> int:
        return int(self.vectors.shape[1])


class VectorFileError(TalkaError):
    """A file or folder of word vectors that cannot be read.

    >>> print(VectorFileError("here", "has neither vectors.arrow nor vectors.txt"))
    cannot read word vectors: here has neither vectors.arrow nor vectors.txt.
    """

    exit_code = 2

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path, self.problem = path, problem

    def __str__(self) -> str:
        return f"cannot read word vectors: {self.path} {self.problem}."


def write_vectors(stored: StoredVectors, directory: Path, *, header: bool) -> None:
    """Write vectors.txt and vectors.arrow; each file appears when it is complete."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with (
            whole_file(directory / TEXT_NAME) as text,
            whole_file(directory / ARROW_NAME) as arrow,
        ):
            _write_text(text, stored, header=header)
            _write_arrow(arrow, stored)
    except OSError as error:
        raise output_error(directory, error, "Choose a folder that you may write to.") from error


def _write_text(path: Path, stored: StoredVectors, *, header: bool) -> None:
    line = "%s" + " %.6f" * stored.dim + "\n"  # six decimals, like GloVe's program
    with path.open("w", encoding="utf-8", newline="\n") as file:
        if header:
            file.write(f"{len(stored.words)} {stored.dim}\n")
        for word, vector in zip(stored.words, stored.vectors, strict=True):
            file.write(line % (word, *vector.tolist()))


def _write_arrow(path: Path, stored: StoredVectors) -> None:
    counts = stored.counts
    values = pa.array(stored.vectors.reshape(-1))
    columns = {
        "word": pa.array(stored.words, pa.string()),
        "count": pa.nulls(len(stored.words), pa.int64()) if counts is None else pa.array(counts),
        "vector": pa.FixedSizeListArray.from_arrays(values, stored.dim),
    }
    batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    with pa.ipc.new_file(str(path), batch.schema) as writer:
        writer.write_batch(batch)


def read_vectors(directory: Path) -> StoredVectors:
    """Read vectors.arrow, or vectors.txt if there is no vectors.arrow."""
    for name, read in ((ARROW_NAME, _read_arrow), (TEXT_NAME, _read_text)):
        path = directory / name
        try:
            if path.is_file():
                return _checked(read(path), path)
        except OSError as error:
            problem = f"cannot be opened or read ({error.strerror or error})"
            raise VectorFileError(str(path), problem) from error
        except UnicodeDecodeError as error:
            raise VectorFileError(str(path), "is not UTF-8 text") from error
    if not directory.is_dir():
        raise VectorFileError(str(directory), "is not a folder")
    raise VectorFileError(str(directory), f"has neither {ARROW_NAME} nor {TEXT_NAME}")


def _checked(stored: StoredVectors, path: Path) -> StoredVectors:
    wrong = np.flatnonzero(~np.isfinite(stored.vectors).all(axis=1))
    if len(wrong):
        word = stored.words[wrong[0]]
        problem = f"has a value that is not a finite number in the vector of {word!r}"
        raise VectorFileError(str(path), problem)
    return stored


def _read_arrow(path: Path) -> StoredVectors:
    try:
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        table.validate(full=True)  # an invalid offset would crash the process
        words, lists = table["word"].to_pylist(), table["vector"]
        dim = lists.type.list_size
        chunks = [chunk.flatten().to_numpy().reshape(-1, dim) for chunk in lists.chunks]
        vectors = np.concatenate(chunks) if chunks else np.empty((0, dim), np.float32)
        counts = table["count"]
        known = counts.null_count == 0 and len(counts) > 0
    except (pa.ArrowException, LookupError, AttributeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        problem = f"is damaged or not a file of word vectors ({reason})"
        raise VectorFileError(str(path), problem) from error
    vectors = np.ascontiguousarray(vectors, np.float32)
    return StoredVectors(words, vectors, counts.to_numpy() if known else None)


def _read_text(path: Path) -> StoredVectors:
    with path.open(encoding="utf-8", newline="\n") as file:  # words may contain other line ends
        first, second = file.readline(), file.readline()
        begin = [line for line in (first, second) if line]
        if _is_header(first, second):
            begin = begin[1:]
        words, vectors = _parse(path, itertools.chain(begin, file))
    return StoredVectors(words, vectors, counts=None)


def _fields(line: str) -> list[str]:
    return line.rstrip(" \r\n").split(" ")


def _is_header(first: str, second: str) -> bool:
    """Return whether a line is two whole numbers, the second the number of values per line."""
    fields = _fields(first)
    return (
        len(fields) == 2
        and all(field.isdecimal() for field in fields)
        and (not second or len(_fields(second)) == int(fields[1]) + 1)
    )


def _parse(path: Path, lines: Iterable[str]) -> tuple[list[str], NDArray[np.float32]]:
    words: list[str] = []
    rows: list[NDArray[np.float32]] = []
    for number, line in enumerate(lines, start=1):
        word, *values = _fields(line)
        try:
            row = np.array([float(value) for value in values], np.float32)
        except ValueError as error:
            raise VectorFileError(str(path), f"has a bad value in row {number}: {error}") from None
        if not word or not values or (rows and len(row) != len(rows[0])):
            wanted = f"{len(rows[0])} values" if rows else "a word and its values"
            raise VectorFileError(str(path), f"must have {wanted} in row {number}")
        words.append(word)
        rows.append(row)
    return words, np.stack(rows) if rows else np.empty((0, 0), np.float32)
