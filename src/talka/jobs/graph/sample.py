"""Samples of large edge files: slices of the file, written as a small file of the same format.

Reading a large graph takes minutes, but a plan must be available in seconds. Slices are spread over
the whole file because edges are often sorted; compressed files can only be read from the beginning.
"""

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from talka.files.compressed import packing_of, unpacked
from talka.graph.reading.detect import FileFormat, format_of
from talka.inputs import is_piped

MAX_WHOLE_BYTES: Final = 48_000_000
"""Smaller files are read completely: that takes a second or two, and the plan is exact."""
SAMPLE_BYTES: Final = 16_000_000
SAMPLE_ROWS: Final = 1_000_000
_NUM_SLICES: Final = 64
_PIECE_BYTES: Final = 1 << 17
_BATCH_ROWS: Final = SAMPLE_ROWS // _NUM_SLICES
_LINES: Final = ("edges", "csv", "tsv", "ldbc", "adjacency", "mtx")
"""Text formats whose lines do not depend on their position in the file."""
_MATRIX_SIZE: Final = re.compile(rb"^(?!%)\s*(\d+)\s+(\d+)\s+\d+\s*$", re.MULTILINE)


class GraphSample(NamedTuple):
    """Two small files with edges of a large one."""

    half: Path
    """Every other slice of `whole`, to estimate how counts grow with the number of edges."""
    whole: Path
    format: FileFormat
    growth: float
    """Size of the large file divided by the size of `whole`."""


def needs_sample(path: Path) -> bool:
    """Return whether a file is too large to be read completely for its plan."""
    return not is_piped(path) and path.is_file() and path.stat().st_size > MAX_WHOLE_BYTES


def sample_of(path: Path, format: FileFormat, folder: Path) -> GraphSample | None:
    """Write samples of a file into `folder`; return None if its format cannot be sampled."""
    format = format_of(path) if format == "auto" else format
    if format in ("parquet", "arrow"):
        return _table_sample(path, format, folder)
    if format not in _LINES:
        return None
    with path.open("rb") as file:
        packed = packing_of(file.read(4)) is not None
    slices, growth = _packed_lines(path) if packed else _slices_of_lines(path)
    half, whole = folder / f"half.{format}", folder / f"whole.{format}"
    for part, chosen in ((half, slices[::2]), (whole, slices)):
        text = b"".join(chosen)
        part.write_bytes(_with_matrix_size(text) if format == "mtx" else text)
    # The second file of LDBC, a list of vertices, matters little: nearly all have edges.
    return GraphSample(half, whole, "edges" if format == "ldbc" else format, growth)


def _slices_of_lines(path: Path) -> tuple[list[bytes], float]:
    """Return whole lines from evenly spaced positions, and the growth; slice 0 has the header."""
    num_bytes, slice_bytes = path.stat().st_size, SAMPLE_BYTES // _NUM_SLICES
    slices = []
    with path.open("rb") as file:
        for number in range(_NUM_SLICES):
            file.seek(number * num_bytes // _NUM_SLICES)
            if number:
                file.readline()  # skip the rest of a line that began earlier
            slices.append(file.read(slice_bytes) + file.readline())
    if not slices[-1].endswith(b"\n"):
        slices[-1] += b"\n"
    return slices, num_bytes / sum(map(len, slices))


def _packed_lines(path: Path) -> tuple[list[bytes], float]:
    """Return lines from the beginning of a compressed file, in slices, and the growth."""
    read_bytes, text = 0, bytearray()

    def pieces() -> Iterator[bytes]:
        nonlocal read_bytes
        with path.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                read_bytes += len(piece)
                yield piece

    for piece in unpacked(pieces()):
        text += piece
        if len(text) >= SAMPLE_BYTES:
            break
    del text[text.rfind(b"\n") + 1 :]
    lines = bytes(text).splitlines(keepends=True)
    step = -(-len(lines) // _NUM_SLICES)
    slices = [b"".join(lines[start : start + step]) for start in range(0, len(lines), step)]
    return slices, path.stat().st_size / read_bytes


def _with_matrix_size(text: bytes) -> bytes:
    """Set the number of entries in the size line of a MatrixMarket file to that of the sample."""
    size = _MATRIX_SIZE.search(text)
    if size is None:
        return text  # the reader reports the error
    entries = text[size.end() :].lstrip(b"\r\n")
    counted = b"%b %b %d\n" % (size[1], size[2], entries.count(b"\n"))
    return text[: size.start()] + counted + entries


def _table_sample(path: Path, format: FileFormat, folder: Path) -> GraphSample:
    batches, num_rows = _parquet_batches(path) if format == "parquet" else _arrow_batches(path)
    half, whole = folder / "half.arrow", folder / "whole.arrow"
    for part, chosen in ((half, batches[::2]), (whole, batches)):
        schema = chosen[0].schema
        with pa.OSFile(str(part), "wb") as sink, pa.ipc.new_file(sink, schema) as out:
            for batch in chosen:
                out.write_batch(batch)
    growth = num_rows / max(1, sum(batch.num_rows for batch in batches))
    return GraphSample(half, whole, "arrow", growth)


def _parquet_batches(path: Path) -> tuple[list[Any], int]:
    with pq.ParquetFile(path) as file:
        groups = _spread(file.num_row_groups)
        per_group = -(-_NUM_SLICES // max(1, len(groups)))
        batches = [
            batch
            for group in groups
            for batch in islice(file.iter_batches(_BATCH_ROWS, row_groups=[group]), per_group)
        ]
        return batches, file.metadata.num_rows


def _arrow_batches(path: Path) -> tuple[list[Any], int]:
    with pa.memory_map(str(path)) as source:
        file = pa.ipc.open_file(source)
        sizes = [file.get_batch(index).num_rows for index in range(file.num_record_batches)]
        chosen = _spread(len(sizes))
        limit = -(-SAMPLE_ROWS // max(1, len(chosen)))
        return [file.get_batch(index).slice(0, limit) for index in chosen], sum(sizes)


def _spread(count: int) -> list[int]:
    """Return at most `_NUM_SLICES` of the numbers below `count`, evenly spaced."""
    step = max(1, count // _NUM_SLICES)
    return list(range(0, count, step))[:_NUM_SLICES]
