"""Writing of answers to files, complete or not at all, in CSV, JSON, Parquet or Arrow."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TextIO

import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

from talka.errors import InvalidValueError
from talka.files import errors_about, whole_file

_BATCH_ROWS: Final = 65_536


def write_json_rows(table: Any, file: TextIO) -> None:
    """Write a table as a JSON list with one object per row.

    >>> import io
    >>> file = io.StringIO()
    >>> write_json_rows(pyarrow.table({"vertex": ["a", "b"], "value": [1, None]}), file)
    >>> json.loads(file.getvalue())
    [{'vertex': 'a', 'value': 1}, {'vertex': 'b', 'value': None}]
    """
    before = "[\n"
    for row in _rows(table):
        file.write(before + json.dumps(row, ensure_ascii=False))
        before = ",\n"
    file.write("\n]\n" if before == ",\n" else "[]\n")


def _rows(table: Any) -> Iterator[dict[str, Any]]:
    for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
        yield from batch.to_pylist()


def _write_json(answer: Any, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        if isinstance(answer, dict):
            file.write(json.dumps(answer, indent=2) + "\n")
        else:
            write_json_rows(answer, file)


def _write_csv(answer: Any, path: Path) -> None:
    with path.open("wb") as file:  # Arrow only accepts file names in UTF-8
        pyarrow.csv.write_csv(answer, file)


def _write_parquet(answer: Any, path: Path) -> None:
    with path.open("wb") as file:
        pyarrow.parquet.write_table(answer, file)


def _write_arrow(answer: Any, path: Path) -> None:
    with path.open("wb") as file:
        pyarrow.feather.write_feather(answer, file, compression="uncompressed")


WRITERS: Final[Mapping[str, Callable[[Any, Path], None]]] = MappingProxyType(
    {
        "csv": _write_csv,
        "json": _write_json,
        "parquet": _write_parquet,
        "arrow": _write_arrow,
    }
)
_ENDINGS: Final = {f".{name}": name for name in WRITERS} | {".feather": "arrow"}


def format_of_output(path: Path, requested: str | None) -> str:
    """Return the requested format, or the format for the suffix of the file.

    >>> format_of_output(Path("ranks.parquet"), None), format_of_output(Path("ranks"), "csv")
    ('parquet', 'csv')
    """
    if requested is not None and requested in WRITERS:
        return requested
    by_suffix = _ENDINGS.get(path.suffix.lower())
    if by_suffix is None:
        allowed = f"a name that ends in {', '.join(_ENDINGS)}, or be combined with --format"
        raise InvalidValueError("--out", str(path), allowed)
    return by_suffix


def check_answer_fits(algorithm: str, format: str, *, is_table: bool) -> None:
    """Raise InvalidValueError if an answer that is not a table should be written as one."""
    if not is_table and format != "json":
        allowed = f"json for {algorithm}, whose answer is not a table"
        raise InvalidValueError("--format", format, allowed)


def write_answer(answer: Any, path: Path, format: str) -> None:
    """Write an answer; the file appears when it is complete."""
    with errors_about(path), whole_file(path) as beside:
        WRITERS[format](answer, beside)
