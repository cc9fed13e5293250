"""One bit per value: values of at least zero become their mean, negative values become theirs.

    values per block (4)    means, two float32 per block    signs, one bit each

Without feedback there is one block (K2): n bits and two means. With error feedback a block has 512
values by default (`onebit:all+ef` and `onebit:1024+ef` have others): gradients have a few large
entries, and with two means for millions of values residuals grow so large that training lags
behind.

One bit cannot represent zero: a row of a matrix that is zero at every step (the embedding of a word
that does not occur) would accumulate error without end. Rows that are exactly zero are masked: they
are not part of any mean, stay exactly zero, and have no signs. The mask is sent only if there is
such a row; the highest bit of the first word is then set:

    block (4)    row length (4)    place of the first value in its row (4)    mask, one bit per row    means    signs
"""

import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from talka.compress.base import Draw, SectionCompressor
from talka.compress.bits import signs
from talka.compress.layout import Piece
from talka.compress.payload import Bytes, Floats
from talka.compress.seen import BytesSeen
from talka.errors import PayloadError, SpecError

MIN_ROW = 8
"""Smallest number of values per row for which a bit in a mask pays off."""
FEEDBACK_BLOCK = 512
ALL = 0
"""Block size that stands for all values of a section."""
_HAS_MASK = 1 << 31

Words = NDArray[np.uint32]
Indices = NDArray[np.int64]
Rows = tuple[int, int]
"""Number of values per row, and the place of the first value in its row."""


class OneBit(SectionCompressor):
    """Sends the sign of each value, and two means per block."""

    name, code = "onebit", 4
    contracts = detects_nonfinite = True

    def __init__(self, block: int | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._block = block
        self._seen = BytesSeen(4)

    @classmethod
    def parse(cls, arguments: list[str], **options: Any) -> Self:
        if not arguments:
            return cls(**options)
        if arguments == ["all"]:
            return cls(ALL, **options)
        [block] = arguments if len(arguments) == 1 else [""]
        if not block.isdecimal() or not 0 < int(block) < _HAS_MASK or int(block) % 32:
            raise SpecError(
                f"onebit:{'/'.join(arguments)}",
                "does not give the number of values that share two means",
                "a multiple of 32, or all: onebit:512, onebit:all, or onebit alone",
            )
        return cls(int(block), **options)

    @property
    def spec(self) -> str:
        if self._block is None:
            return self.name
        return f"{self.name}:{self._block or 'all'}"

    @property
    def block(self) -> int:
        """Number of values that share two means; ALL for a whole section."""
        if self._block is not None:
            return self._block
        return FEEDBACK_BLOCK if self.has_feedback else ALL

    def encode_section(
        self, values: Floats, residual: Floats | None, piece: Piece, draw: Draw, room: Bytes
    ) -> int:
        words = room[: len(room) // 4 * 4].view(np.uint32)
        words[0], at = self.block, 1
        starts, stops = np.zeros(1, np.int64), np.array([len(values)])
        row_length = math.prod(piece.shape[1:])
        if len(piece.shape) > 1 and row_length >= MIN_ROW and len(values):
            rows = row_length, piece.offset % row_length
            mask = np.empty(_num_words(_num_rows(len(values), rows)), np.uint32)
            if signs.find_zero_rows(values, residual, *rows, mask):
                words[0] |= np.uint32(_HAS_MASK)
                words[1:3], at = rows, 3 + len(mask)
                words[3:at] = mask
                starts, stops = _runs(mask, len(values), rows)
        num_kept = int((stops - starts).sum())
        num_means = 2 * _num_blocks(num_kept, self.block)
        end = at + num_means + _num_words(num_kept)
        means, sent = words[at : at + num_means].view(np.float32), words[at + num_means : end]
        block = self.block or max(num_kept, 1)
        if not signs.write_blocks(values, residual, starts, stops, block, means, sent):
            raise FloatingPointError
        self._seen.note(self._num_words_of(len(values)), 4 * end)
        return 4 * end

    def decode_section(self, body: Bytes, out: Floats, *, add: bool, scale: float) -> None:
        if len(body) < 4 or len(body) % 4:
            raise PayloadError(f"has a section of {len(body)} bytes, which is not means and signs")
        words, at = body.view(np.uint32), 1
        block = int(words[0]) & ~_HAS_MASK
        if block % 32:
            raise PayloadError(f"has blocks of {block} values, which is not a multiple of 32")
        starts, stops = np.zeros(1, np.int64), np.array([len(out)])
        if int(words[0]) & _HAS_MASK:
            rows, mask = _read_mask(words, len(out))
            at = 3 + len(mask)
            starts, stops = _runs(mask, len(out), rows)
        num_kept = int((stops - starts).sum())
        num_means = 2 * _num_blocks(num_kept, block)
        if len(words) != at + num_means + _num_words(num_kept):
            raise PayloadError(f"has {len(words)} words of means and signs for {num_kept} values")
        means, sent = words[at : at + num_means].view(np.float32), words[at + num_means :]
        block = min(block or num_kept, max(num_kept, 1) + 31 & ~31)
        signs.read_blocks(sent, means, starts, stops, max(block, 1), add, np.float32(scale), out)

    def section_max_bytes(self, num_values: int) -> int:
        mask_words = 2 + _num_words(num_values // MIN_ROW + 2)
        return 4 * (self._num_words_of(num_values) + mask_words)

    def section_expected_bytes(self, num_values: int) -> float:
        return self._seen.expected(self._num_words_of(num_values))

    def _num_words_of(self, num_values: int) -> int:
        """Return the number of words of a section without a mask."""
        return 1 + 2 * _num_blocks(num_values, self.block) + _num_words(num_values)


def _num_words(num_bits: int) -> int:
    return -(-num_bits // 32)


def _num_blocks(num_values: int, block: int) -> int:
    """Return the number of blocks; a section without values has none."""
    return -(-num_values // (block or max(num_values, 1)))


def _num_rows(num_values: int, rows: Rows) -> int:
    row_length, phase = rows
    return -(-(phase + num_values) // row_length)


def _runs(mask: Words, num_values: int, rows: Rows) -> tuple[Indices, Indices]:
    """Return starts and stops of runs of unmasked rows; at least one run, which may be empty."""
    row_length, phase = rows
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[: _num_rows(num_values, rows)]
    edges = np.flatnonzero(np.diff(bits.view(np.int8), prepend=1, append=1))
    places = np.clip(edges * row_length - phase, 0, num_values)
    if not len(places):
        return np.zeros(1, np.int64), np.zeros(1, np.int64)
    return places[::2].copy(), places[1::2].copy()


def _read_mask(words: Words, num_values: int) -> tuple[Rows, Words]:
    rows = (int(words[1]), int(words[2])) if len(words) >= 3 else (0, 0)
    if rows[0] < MIN_ROW or rows[1] >= rows[0]:
        raise PayloadError(f"has a mask for rows of {rows[0]} values from {rows[1]} on")
    end = 3 + _num_words(_num_rows(num_values, rows))
    if end > len(words):
        raise PayloadError("ends inside the mask of its rows")
    return rows, words[3:end]
