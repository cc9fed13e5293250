"""Split a block of lines into rows of fields, and parse fields as ids and weights."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from talka.graph.kernels import fields as kernels

GAPS = b" \t,\v\f"
"""Characters that separate fields, in any number."""
COMMENTS = b"#%"
"""Characters that begin a comment line."""
_MAX_SHOWN = 80


class BadLine(Exception):
    """An invalid line, counted from the beginning of its block. Only used inside this folder."""

    def __init__(self, line: int, problem: str, advice: str) -> None:
        super().__init__(line, problem, advice)
        self.line, self.problem, self.advice = line, problem, advice


class Integers(NamedTuple):
    """Parsed integers of a block."""

    values: NDArray[Any]
    """uint32 if all values fit; otherwise the bits of int64 or uint64, as uint64."""
    has_negative: bool
    is_large: bool
    """True if a value exceeds int64."""


class FieldRows:
    """The fields of a block, by row: row r has the fields from `ends[r - 1]` to `ends[r]`."""

    def __init__(self, text: bytes) -> None:
        self._text = np.frombuffer(text, np.uint8)
        max_fields = len(text) // 2 + 1
        self._fields = (np.empty(max_fields, np.uint32), np.empty(max_fields, np.uint32))
        rows = (np.empty(max_fields, np.uint32), np.empty(max_fields, np.uint32))
        kinds, comments = kernels.kinds_of_bytes(GAPS), np.zeros(256, np.bool_)
        comments[list(COMMENTS)] = True
        self.num_fields, self.num_rows, self.num_lines = kernels.cut_fields(
            self._text, kinds, comments, self._fields, rows
        )
        self.ends = rows[0][: self.num_rows].astype(np.int64)
        self._lines = rows[1]

    @property
    def lines(self) -> NDArray[np.int64]:
        """Line of each row, counted from 0."""
        return self._lines[: self.num_rows].astype(np.int64)

    def cut_to_width(self, width: int) -> list[BadLine]:
        """Drop rows from the first on that does not have `width` fields, and return that one."""
        is_valid = self.ends == width * np.arange(1, self.num_rows + 1)
        if is_valid.all():
            return []
        row = int(np.argmin(is_valid))
        count = _counted(int(self.ends[row]) - width * row)
        problem = f"{self._shown(row)} has {count}, but the lines before it have {width}"
        advice = 'Fix or remove the line; for lists of neighbours use format="adjacency".'
        self.num_rows, self.num_fields, self.ends = row, width * row, self.ends[:row]
        return [BadLine(int(self._lines[row]), problem, advice)]

    def integers(self, first: int = 0, step: int = 1) -> Integers:
        """Parse each `step`-th field, starting at `first`, as an integer."""
        numbers = np.empty(len(range(first, self.num_fields, step)), np.uint64)
        result, index, has_negative, largest = kernels.read_integers(
            self._text, self._fields, first, step, numbers
        )
        if result != kernels.WHOLE:
            raise self._not_an_integer(first + step * index, is_large=result == kernels.TOO_LARGE)
        if largest < 2**32 and not has_negative:
            return Integers(numbers.astype(np.uint32), has_negative=False, is_large=False)
        return Integers(numbers, bool(has_negative), bool(largest >= 2**63))

    def strings(self, first: int = 0, step: int = 1) -> Any:
        """Return the same fields as an Arrow array of strings; they must be UTF-8."""
        count = len(range(first, self.num_fields, step))
        offsets, packed = np.empty(count + 1, np.int64), np.empty(len(self._text), np.uint8)
        kernels.pack_fields(self._text, self._fields, first, step, offsets, packed)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(packed[: offsets[-1]].copy())]
        array = pa.Array.from_buffers(pa.large_binary(), count, buffers)
        try:
            return array.cast(pa.large_string())
        except pa.ArrowInvalid:
            at = next(i for i, field in enumerate(array.to_pylist()) if not _is_utf8(field))
            problem = f"{array[at].as_py()!r} is not UTF-8"
            advice = "Other encodings can be converted with iconv."
            raise BadLine(self._line_of(first + step * at), problem, advice) from None

    def weights(self, first: int, step: int) -> NDArray[np.float64]:
        """Parse the same fields as floats; none may be NaN."""
        texts = self.strings(first, step)
        try:
            weights = np.asarray(texts.cast(pa.float64()).to_numpy(), np.float64)
        except pa.ArrowInvalid:  # Python parses more notations, and shows which field is invalid
            weights = np.array([_as_float(text) for text in texts.to_pylist()], np.float64)
        if np.isnan(weights).any():
            at = int(np.argmax(np.isnan(weights)))
            problem = f"the weight {texts[at].as_py()!r} is not a number"
            advice = "The third column is the weight; every edge needs one."
            raise BadLine(self._line_of(first + step * at), problem, advice)
        return weights

    def _not_an_integer(self, field: int, *, is_large: bool) -> BadLine:
        text = self._decoded(*(int(array[field]) for array in self._fields))
        advice = "Ids were whole numbers up to here; string ids can come as an Arrow table."
        problem = f"{_short(text)} is not a whole number"
        if is_large:
            problem = f"the id {_short(text)} is beyond 64 bits"
            advice = "Give such ids as strings, in an Arrow table, or renumber the vertices."
        return BadLine(self._line_of(field), problem, advice)

    def _line_of(self, field: int) -> int:
        return int(self._lines[np.searchsorted(self.ends, field, side="right")])

    def _shown(self, row: int) -> str:
        first = int(self.ends[row - 1]) if row else 0
        return _short(self._decoded(self._fields[0][first], self._fields[1][self.ends[row] - 1]))

    def _decoded(self, start: int, stop: int) -> str:
        return (
            self._text[start : min(stop, start + 4 * _MAX_SHOWN)].tobytes().decode(errors="replace")
        )


def _counted(count: int) -> str:
    return f"{count} field" if count == 1 else f"{count} fields"


def _short(text: str) -> str:
    return repr(text) if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]!r}..."


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _as_float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
