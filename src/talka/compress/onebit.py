"""One bit a value: what is zero or more becomes the mean of its side, what is less that of the other.

    values of a block (4)    means, two float32 a block    signs, one bit each

Alone it is the lecture's (K2): one block, so n bits and two means. Under error feedback a block has
512 values unless said otherwise (`onebit:all+ef`, `onebit:1024+ef`): gradients have a few large
entries, and two means for millions of values lose so much that training lags behind what is lost.

One bit cannot say zero: a row of a matrix that is zero at every step (an embedding of a word that
does not occur) would gather error for ever. Rows of which all is exactly zero are masked: they count
for no mean, stay exactly zero, and send no signs. The mask travels only if there is such a row; the
highest bit of the first word says so:

    block (4)    row length (4)    place of the first value in its row (4)    mask, one bit a row    means    signs
"""

import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from talka.compress.base import Draw, Sectioned
from talka.compress.bits import signs
from talka.compress.layout import Piece
from talka.compress.payload import Bytes, Floats
from talka.compress.seen import BytesSeen
from talka.errors import PayloadError, SpecError

MIN_ROW = 8
"""Values of a row that are worth a bit of a mask."""
FED_BACK_BLOCK = 512
ALL = 0
"""As a block: all values of a section."""
_HAS_MASK = 1 << 31

Words = NDArray[np.uint32]
Rows = tuple[int, int]
"""How long a row is, and the place of the first value in its row."""


class OneBit(Sectioned):
    name, code = "onebit", 4
    contracts = True

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
                "does not say how many values share two means",
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
        """Values that share two means; ALL for those of a whole section."""
        if self._block is not None:
            return self._block
        return FED_BACK_BLOCK if self.fed_back else ALL

    def encode_section(
        self, values: Floats, residual: Floats | None, piece: Piece, draw: Draw, room: Bytes
    ) -> int:
        words = room[: len(room) // 4 * 4].view(np.uint32)
        words[0], at = self.block, 1
        rows = _row_length(piece), piece.offset % max(_row_length(piece), 1)
        if len(piece.shape) < 2 or rows[0] < MIN_ROW:
            end = self._write(values, residual, words, at)
        else:
            mask = np.empty(_num_words(_num_rows(len(values), rows)), np.uint32)
            num_masked = signs.find_zero_rows(values, residual, *rows, mask)
            if num_masked:
                words[0] |= np.uint32(_HAS_MASK)
                words[1:3] = rows
                at = 3 + len(mask)
                words[3:at] = mask
                end = self._write_kept(values, residual, rows, mask, num_masked, words, at)
            else:
                end = self._write(values, residual, words, at)
        self._seen.note(self._num_words_of(len(values)), 4 * end)
        return 4 * end

    def _write(self, values: Floats, residual: Floats | None, words: Words, at: int) -> int:
        block = self.block or len(values)
        num_means = 2 * _num_blocks(len(values), block)
        end = at + num_means + _num_words(len(values))
        means, sent = words[at : at + num_means].view(np.float32), words[at + num_means : end]
        if not signs.write_blocks(values, residual, max(block, 1), means, sent):
            raise FloatingPointError
        return end

    def _write_kept(
        self,
        values: Floats,
        residual: Floats | None,
        rows: Rows,
        mask: Words,
        num_masked: int,
        words: Words,
        at: int,
    ) -> int:
        """Rows that are not masked, side by side."""
        kept = np.empty(len(values) - num_masked, np.float32)
        signs.kept_values(values, mask, *rows, kept)
        if residual is None:
            return self._write(kept, None, words, at)
        kept_residual = np.empty_like(kept)
        signs.kept_values(residual, mask, *rows, kept_residual)
        end = self._write(kept, kept_residual, words, at)
        signs.put_back(kept_residual, mask, *rows, False, residual)  # noqa: FBT003  # a kernel
        return end

    def decode_section(self, body: Bytes, out: Floats, *, add: bool, scale: float) -> None:
        if len(body) < 4 or len(body) % 4:
            raise PayloadError(f"has a section of {len(body)} bytes, no means and signs")
        words = body.view(np.uint32)
        block, has_mask = int(words[0]) & ~_HAS_MASK, int(words[0]) & _HAS_MASK
        if not has_mask:
            _read(words[1:], block, out, add=add, scale=scale)
            return
        rows, mask = _read_mask(words, len(out))
        kept = np.empty(signs.num_unmasked(mask, len(out), *rows), np.float32)
        _read(words[3 + len(mask) :], block, kept, add=False, scale=scale)
        signs.put_back(kept, mask, *rows, add, out)

    def section_max_bytes(self, num_values: int) -> int:
        mask_words = 2 + _num_words(num_values // MIN_ROW + 2)
        return 4 * (self._num_words_of(num_values) + mask_words)

    def section_expected_bytes(self, num_values: int) -> float:
        return self._seen.expected(self._num_words_of(num_values))

    def _num_words_of(self, num_values: int) -> int:
        """Of a section without a mask."""
        block = self.block or num_values
        return 1 + 2 * _num_blocks(num_values, block) + _num_words(num_values)


def _num_words(num_bits: int) -> int:
    return -(-num_bits // 32)


def _num_blocks(num_values: int, block: int) -> int:
    return -(-num_values // block) if block else 0


def _row_length(piece: Piece) -> int:
    return math.prod(piece.shape[1:])


def _num_rows(num_values: int, rows: Rows) -> int:
    row_length, phase = rows
    return -(-(phase + num_values) // row_length)


def _read(words: Words, block: int, out: Floats, *, add: bool, scale: float) -> None:
    if block % 32:
        raise PayloadError(f"has blocks of {block} values, no multiple of 32")
    block = block or len(out)
    num_means = 2 * _num_blocks(len(out), block)
    if len(words) != num_means + _num_words(len(out)):
        raise PayloadError(f"has {len(words)} words of means and signs for {len(out)} values")
    means = words[:num_means].view(np.float32)
    signs.read_blocks(words[num_means:], means, max(block, 1), add, np.float32(scale), out)


def _read_mask(words: Words, num_values: int) -> tuple[Rows, Words]:
    rows = (int(words[1]), int(words[2])) if len(words) >= 3 else (0, 0)
    if rows[0] < MIN_ROW or rows[1] >= rows[0]:
        raise PayloadError(f"has a mask for rows of {rows[0]} values from {rows[1]} on")
    end = 3 + _num_words(_num_rows(num_values, rows))
    if end > len(words):
        raise PayloadError("ends inside the mask of its rows")
    return rows, words[3:end]
