"""Parsing of text: find the fields in a block of whole lines, and convert them to integers."""

from typing import Any, Final

import numpy as np

from talka.compiled import compiled

_INSIDE, _GAP, _END = 0, 1, 2
_LF, _CR = 10, 13
_MINUS, _ZERO, _TEN = 45, np.uint64(48), np.uint64(10)
_SIGN: Final = np.uint64(2**63)
_BEFORE_LAST: Final = np.uint64((2**64 - 1) // 10)

WHOLE, NO_NUMBER, TOO_LARGE = 0, 1, 2
"""Results of `read_integers`."""


def kinds_of_bytes(gaps: bytes) -> Any:
    """Return the kind of each byte value: inside a field, gap between fields, or end of line."""
    kinds = np.zeros(256, np.uint8)
    kinds[list(gaps)] = _GAP
    kinds[[_LF, _CR]] = _END
    return kinds


@compiled
def cut_fields(text: Any, kinds: Any, comments: Any, fields: Any, rows: Any) -> Any:
    """Find fields and rows; comments and lines without fields are not rows.

    A line ends with LF, CR LF or CR. Writes the start and end of each field to `fields`, and to
    `rows` the number of fields up to the end of each row and the line it is in. For n bytes,
    n // 2 + 1 entries are enough for both. Returns the numbers of fields, rows and lines.
    """
    # One pass over the bytes with a table look-up per byte: `kinds` has the kind of each byte value
    # and `comments` whether it starts a comment. Fields are only located here, as pairs of
    # positions; nothing is copied. The outer loop takes a line, the inner one a field or a gap.
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
    """Convert every `step`-th field from `first` on to an integer of 64 bits.

    Returns the result (`WHOLE` or the problem of the first bad field) and the index of that field,
    whether any number is negative, and the largest that is not.
    """
    # Numbers are accumulated as uint64, so that one loop serves signed and unsigned ids: a negative
    # one is stored in two's complement, and the caller chooses the type from the results. Up to 19
    # digits always fit; only longer fields are checked for overflow, digit by digit.
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
        always_fits = end - at < 20
        while at < end:
            digit = np.uint64(text[at]) - _ZERO
            if digit >= _TEN:  # characters below "0" wrap around
                return NO_NUMBER, index, has_negative, largest
            if not always_fits and (
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
    """Copy every `step`-th field from `first` on into one buffer with offsets, as Arrow does."""
    starts, ends = fields
    size = 0
    for index in range(len(offsets) - 1):
        offsets[index] = size
        for at in range(starts[first + index * step], ends[first + index * step]):
            packed[size] = text[at]
            size += 1
    offsets[len(offsets) - 1] = size
