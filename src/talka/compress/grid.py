"""Stochastic rounding to a grid: uniform, qsgd and terngrad are one kernel.

Each value is divided by a scale and rounded to one of the points -1, ..., 1 of an even grid: to one
of its two neighbours, more often to the nearer one, so that the mean of many encodings is the
value. Four choices define a compressor:

    grid     2^k points without a zero (uniform:k), or s levels on either side of zero (qsgd:s)
    scale    the Euclidean norm (l2) or the largest magnitude (max) of a bucket
    bucket   number of values that share a scale, or all values of a section
    code     fixed width, or Elias codes of nonzero levels where those are a tenth shorter

With the Euclidean norm of n values, most values are rounded to zero or the level next to it: few
levels are sent, but the error can be sqrt(n) / s times the value, so error feedback would
accumulate it without bound. With the maximum of a bucket, no error exceeds a step, c = 2 / (2^k -
1) or 1 / s of the largest value: error feedback keeps every residual below c / (1 - c) of the
largest gradient that its bucket ever had.

    points - 1 (highest bit: Elias-coded) (4)    bucket, 0 if all (4)    norms (4 each)    levels

(K3: uniform; QSGD: Alistarh et al., arXiv:1610.02132; TernGrad: Wen et al., arXiv:1705.07878.)
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from talka.compress.base import Draw, SectionCompressor
from talka.compress.bits import elias, elias_reading, levels
from talka.compress.bits.draws import key_of
from talka.compress.bits.gaussian import coded_bytes
from talka.compress.bits.levels import Grid
from talka.compress.bits.packing import num_words
from talka.compress.layout import Piece
from talka.compress.payload import Bytes, Floats
from talka.compress.protocol import NonFinite
from talka.compress.seen import BytesSeen
from talka.errors import InvalidValueError, PayloadError

Words = NDArray[np.uint32]
Norm = Literal["l2", "max"]

MIN_BUCKET = 16
"""Smallest number of values per bucket: norms of smaller ones take more bytes than levels."""
MAX_BUCKET = 1 << 28
CONTRACTING_BUCKET = 512
"""Largest number of values per bucket with error feedback: it keeps residuals small."""
_MAX_TOP = (1 << 16) - 1
_HEAD = 2  # words
_CODED = 1 << 31
_WORTH_CODING = 0.9


class GridRounding(SectionCompressor):
    """Rounds to a grid of `top + 1` points; subclasses choose it by their short forms."""

    unbiased = detects_nonfinite = True

    def __init__(
        self,
        top: int,
        *,
        norm: Norm,
        bucket: int | None,
        fixed: bool,
        seed: int = 0,
        nonfinite: NonFinite = "error",
        min_compressed_values: int = 0,
    ) -> None:
        super().__init__(
            seed=seed, nonfinite=nonfinite, min_compressed_values=min_compressed_values
        )
        if not 1 <= top <= _MAX_TOP:
            raise InvalidValueError("top", top, f"from 1 to {_MAX_TOP}")
        if bucket is not None and not MIN_BUCKET <= bucket <= MAX_BUCKET:
            raise InvalidValueError("bucket", bucket, f"None or {MIN_BUCKET} to {MAX_BUCKET}")
        self.top, self.norm, self.bucket, self.fixed = top, norm, bucket, fixed
        self.width = top.bit_length()
        small = bucket is not None and bucket <= CONTRACTING_BUCKET
        self.contracts = norm == "max" and small and self.width >= 3
        self._seen = BytesSeen()

    def encode_section(
        self, values: Floats, residual: Floats | None, piece: Piece, draw: Draw, room: Bytes
    ) -> int:
        bucket = self.bucket or len(values)
        start = _HEAD + -(-len(values) // bucket)
        end = start + num_words(len(values), self.width)
        words = room[: 4 * end].view(np.uint32)
        words[:_HEAD] = self.top, self.bucket or 0
        grid = _grid(self.top, bucket, words[_HEAD:start].view(np.float32))
        by_largest, key, packed = self.norm == "max", key_of(draw.noise), words[start:]
        num_levels, num_bits = levels.write_levels(
            values, residual, grid, by_largest, key, self.width, not self.fixed, packed
        )
        if num_levels < 0:
            raise FloatingPointError
        if not self.fixed:
            end = start + self._shorten(words, packed, len(values), num_levels, num_bits)
            self._seen.note(len(values), 4 * (end - start))
        return 4 * end

    def _shorten(
        self, words: Words, packed: Words, num_values: int, num_levels: int, num_bits: int
    ) -> int:
        """Replace packed levels by codes that are much shorter, if any; return the words used.

        Codes take twice as long to write and to read, so saving 1% of the bytes is not worth it.
        """
        limit = int(_WORTH_CODING * len(packed))
        if num_bits + num_levels > 32 * limit:  # if every gap took one bit, the shortest
            return len(packed)
        codes = np.empty(limit + elias.MARGIN, np.uint32)
        zero = np.uint32(self.top // 2)
        coded = elias.EliasCode(packed, self.width, num_values, zero, num_levels)
        size = elias.write_codes(coded, limit, codes)
        if not size:
            return len(packed)
        words[0] |= np.uint32(_CODED)
        packed[:size] = codes[:size]
        return size

    def decode_section(self, body: Bytes, out: Floats, *, add: bool, scale: float) -> None:
        if len(body) < 4 * _HEAD or len(body) % 4:
            raise PayloadError(
                f"has a section of {len(body)} bytes, which is not a head and words of a grid"
            )
        words = body.view(np.uint32)
        top, coded = int(words[0]) & (_CODED - 1), bool(words[0] & _CODED)
        bucket = int(words[1]) or len(out)
        if not 1 <= top <= _MAX_TOP or (coded and top % 2) or bucket < min(MIN_BUCKET, len(out)):
            raise PayloadError(f"has a grid of {top + 1} points over buckets of {bucket}")
        start = _HEAD + -(-len(out) // bucket)
        if start > len(words):
            raise PayloadError("ends inside the norms of its buckets")
        grid, rest = _grid(top, bucket, words[_HEAD:start].view(np.float32)), words[start:]
        if not levels.set_scales(grid):
            raise PayloadError("has norms that are negative or not finite")
        if coded:
            if not elias_reading.read_codes(rest, grid, add, np.float32(scale), out):
                raise PayloadError("has codes that are truncated, or of levels outside of the grid")
        elif len(rest) != num_words(len(out), top.bit_length()):
            raise PayloadError(f"has {len(rest)} words for {len(out)} levels of {top}")
        else:
            levels.read_levels(rest, top.bit_length(), grid, add, np.float32(scale), out)

    def section_max_bytes(self, num_values: int) -> int:
        return self._bytes_of_scales(num_values) + 4 * num_words(num_values, self.width)

    def section_expected_bytes(self, num_values: int) -> float:
        if self.fixed:
            return self.section_max_bytes(num_values)
        if self._seen.is_empty:
            return self._bytes_of_scales(num_values) + self._gaussian_bytes(num_values)
        return self._bytes_of_scales(num_values) + self._seen.expected(num_values)

    def _gaussian_bytes(self, num_values: int) -> float:
        """Return the expected bytes of the levels of gaussian values, packed or coded."""
        packed = 4.0 * num_words(num_values, self.width)
        bucket = max(min(self.bucket or num_values, num_values), 1)
        coded = coded_bytes(num_values, self.top // 2, by_largest=self.norm == "max", bucket=bucket)
        return coded if coded <= _WORTH_CODING * packed else packed

    def _bytes_of_scales(self, num_values: int) -> int:
        num_buckets = -(-num_values // self.bucket) if self.bucket else 1
        return 4 * (_HEAD + num_buckets)


def _grid(top: int, bucket: int, norms: Floats) -> Grid:
    return Grid(top, bucket, norms, np.empty_like(norms), np.empty_like(norms))
