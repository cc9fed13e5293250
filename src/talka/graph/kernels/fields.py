"""Text to fields to whole numbers: short loops over a block of whole lines."""

from typing import Any, Final

import numpy as np

from talka.compiled import compiled

_INSIDE, _GAP, _END = 0, 1, 2
_LF, _CR = 10, 13
_MINUS, _ZERO, _TEN = 45, np.uint64(48), np.uint64(10)
_SIGN: Final = np.uint64(2**63)
_BEFORE_LAST: Final = np.uint64((2**64 - 1) // 10)

WHOLE, NO_NUMBER, TOO_LARGE = 0, 1, 2
"""What `read_integers` found."""


def kinds_of_bytes(gaps: bytes) -> Any:
    """For each byte: inside of a field, a gap between fields, or the end of a line."""
    kinds = np.zeros(256, np.uint8)
    kinds[list(gaps)] = _GAP
    kinds[[_LF, _CR]] = _END
    return kinds


@compiled
def cut_fields(text: Any, kinds: Any, comments: Any, fields: Any, rows: Any) -> Any:
    """Where fields are, and which belong to a line; lines without fields and comments are no rows.

    A line ends with LF, CR LF or CR. `fields` are starts and ends; `rows` are the number of fields
    up to the end of each row, and its line. Half a field and half a row for each byte, and one more,
    are room enough. Returns how many fields, rows and lines there are.
    """
    starts, ends = fields
    row_ends, row_lines = rows
    size = len(text)
    at = num_fields = num_rows = num_lines = 0
    while at < size:
        before = num_fields
        while at < size:
            kind = kinds[text[at]]
            if kind == _END:
                break
            if kind == _GAP:
                at += 1
                continue
            if num_fields == before and comments[text[at]]:
                while at < size and kinds[text[at]] != _END:
                    at += 1
                break
            starts[num_fields] = at
            at += 1
            while at < size and kinds[text[at]] == _INSIDE:
                at += 1
            ends[num_fields] = at
            num_fields += 1
        if num_fields > before:
            row_ends[num_rows] = num_fields
            row_lines[num_rows] = num_lines
            num_rows += 1
        if at + 1 < size and text[at] == _CR and text[at + 1] == _LF:
            at += 1
        at += 1
        num_lines += 1
    return num_fields, num_rows, num_lines


@compiled
def read_integers(text: Any, fields: Any, first: Any, step: Any, numbers: Any) -> Any:
    """Each `step`-th field from `first` on as 64 bits.

    Returns what the first bad field is and which, whether any is negative, the largest that is not.
    """
    starts, ends = fields
    has_negative, largest = False, np.uint64(0)
    for index in range(len(numbers)):
        field = first + index * step
        at, end = starts[field], ends[field]
        is_negative = text[at] == _MINUS
        if is_negative:
            at += np.uint32(1)
        if at == end:
            return NO_NUMBER, index, has_negative, largest
        number = np.uint64(0)
        has_room = end - at < 20  # so many digits always fit
        while at < end:
            digit = np.uint64(text[at]) - _ZERO
            if digit >= _TEN:  # also what is below 0: it wraps around
                return NO_NUMBER, index, has_negative, largest
            if not has_room and (
                number > _BEFORE_LAST or (number == _BEFORE_LAST and digit > np.uint64(5))
            ):
                return TOO_LARGE, index, has_negative, largest
            number = number * _TEN + digit
            at += np.uint32(1)
        if is_negative:
            if number > _SIGN:
                return TOO_LARGE, index, has_negative, largest
            has_negative |= number != 0
            number = np.uint64(0) - number
        else:
            largest = max(largest, number)
        numbers[index] = number
    return WHOLE, 0, has_negative, largest


@compiled
def pack_fields(text: Any, fields: Any, first: Any, step: Any, offsets: Any, packed: Any) -> None:
    """Each `step`-th field from `first` on, one after another, as Arrow keeps strings."""
    starts, ends = fields
    size = 0
    for index in range(len(offsets) - 1):
        offsets[index] = size
        for at in range(starts[first + index * step], ends[first + index * step]):
            packed[size] = text[at]
            size += 1
    offsets[len(offsets) - 1] = size
