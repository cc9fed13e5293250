"""Threshold: entries of at least tau are sent as +tau or -tau; the rest stays in the residual.

One sign bit and one Rice-coded gap per entry (Strom, Interspeech 2015). Above a density of a third
the gaps become a bitmap (see `bits/rice.py`), so a section never takes more than 2 bits per value.
Without feedback, entries below tau are dropped, and larger entries are reduced to tau.

    tau (4)    count (4)    sign bits in words of 4    indices, Rice-coded in words of 4

A fixed tau has the unit of the gradient. With feedback the residual of an entry stays bounded if it
grows by less than tau per step on average: an entry sends at most tau per step.

An adaptive tau is the magnitude that a given share of the values reach, estimated from a sample
each time, so the density is right from the first step on and for any gradients. Two floors keep
residuals bounded (`floor_after`). Each slice of a parameter, by name and offset, has its own floor:
it depends on the former values of that slice, never on the order of threads.
"""

import math
from typing import Any, Self

import numpy as np
import torch

from talka.compiled import compiled
from talka.compress.base import Draw, SectionCompressor
from talka.compress.bits import rice
from talka.compress.bits.largest import kth_largest
from talka.compress.bits.select import Picked, check_finite, magnitude_bits, select
from talka.compress.bits.strides import sample
from talka.compress.layout import Piece
from talka.compress.payload import Bytes, Floats
from talka.compress.protocol import NonFinite
from talka.compress.seen import BytesSeen
from talka.compress.state_key import State, StateKey
from talka.errors import InvalidValueError, PayloadError, SpecError
from talka.short_forms import number_in, short_number

DENSITY = 0.01
_HEAD_BYTES = 8
_SMALLEST_TAU = float(np.finfo(np.float32).tiny)
_LARGEST_TAU = float(np.finfo(np.float32).max)


class Threshold(SectionCompressor):
    """Sends +tau or -tau for large entries; without `tau`, the threshold aims at a density."""

    name, code = "threshold", 22
    sparse = contracts = detects_nonfinite = True

    def __init__(
        self,
        tau: float | None = None,
        *,
        density: float = DENSITY,
        seed: int = 0,
        nonfinite: NonFinite = "error",
        min_compressed_values: int = 0,
    ) -> None:
        super().__init__(
            seed=seed, nonfinite=nonfinite, min_compressed_values=min_compressed_values
        )
        if tau is not None and not _SMALLEST_TAU <= tau <= _LARGEST_TAU:
            raise InvalidValueError("tau", tau, "above 0, and a float32")
        if not 0 < density <= 1:
            raise InvalidValueError("density", density, "above 0 and at most 1")
        self.tau, self.density = tau, density
        self._floors: dict[tuple[str, int], float] = {}
        self._last_density = density
        index_bytes = 4 * rice.expected_words(1_000_000, density * 1_000_000) / 1_000_000
        self._seen = BytesSeen(index_bytes + density / 8)

    @classmethod
    def parse(cls, arguments: list[str], **options: Any) -> Self:
        try:
            match arguments:
                case ["auto"]:
                    return cls(**options)
                case ["auto", text] if (density := number_in(text)) is not None:
                    return cls(density=density, **options)
                case [text] if (tau := number_in(text)) is not None:
                    return cls(tau, **options)
        except InvalidValueError:
            pass
        raise SpecError(
            ":".join([cls.name, "/".join(arguments)]).removesuffix(":"),
            "does not give the threshold of large values",
            "a number above 0 (threshold:0.001), or a density to aim at, above 0 and up to 1 "
            "(threshold:auto/0.01; threshold:auto means 0.01)",
        )

    @property
    def spec(self) -> str:
        if self.tau is not None:
            return f"{self.name}:{short_number(self.tau)}"
        aim = "" if self.density == DENSITY else f"/{short_number(self.density)}"
        return f"{self.name}:auto{aim}"

    def encode_section(
        self, values: Floats, residual: Floats | None, piece: Piece, draw: Draw, room: Bytes
    ) -> int:
        if residual is not None:
            check_finite(values, residual)
        tau = self._tau(values, residual, piece, draw.noise)
        guess = round(1.25 * self._last_density * len(values))
        picked = select(values, residual, magnitude_bits(tau), step=tau, guess=guess)
        check_finite(picked.values)  # values that are not finite always reach the threshold
        if self.tau is None:
            floor = floor_after(picked.values, self._floor(piece))
            self._floors[piece.name, piece.offset] = floor
        size = _write(tau, picked, len(values), room)
        self._last_density = len(picked.indices) / len(values)
        self._seen.note(len(values), size - _HEAD_BYTES)
        return size

    def decode_section(self, body: Bytes, out: Floats, *, add: bool, scale: float) -> None:
        tau, indices, signs = _read(body, len(out))
        if not add:
            out[:] = 0
        _step(indices, signs, tau, np.float32(scale), add, out)

    def section_max_bytes(self, num_values: int) -> int:
        return _HEAD_BYTES + 8 * -(-num_values // 32)

    def section_expected_bytes(self, num_values: int) -> float:
        return _HEAD_BYTES + self._seen.expected(num_values)

    def for_worker(self, index: int) -> Self:
        fresh = super().for_worker(index)
        fresh._floors = {}
        return fresh

    def state(self) -> State:
        floors = {
            StateKey("floor", name, offset): torch.tensor(floor, dtype=torch.float64)
            for (name, offset), floor in self._floors.items()
        }
        return {**super().state(), **floors}

    def load_state(self, state: State) -> None:
        super().load_state(state)
        self._floors = {
            (key.name, key.offset or 0): float(value)
            for key, value in state.items()
            if key.kind == "floor"
        }

    def _floor(self, piece: Piece) -> float:
        return self._floors.get((piece.name, piece.offset), 0.0)

    def _tau(self, values: Floats, residual: Floats | None, piece: Piece, key: int) -> float:
        if self.tau is not None:
            return float(np.float32(self.tau))
        tau = max(quantile(values, residual, self.density, key), self._floor(piece))
        if tau == 0:
            tau = _half_the_mean(values, residual)
        if not math.isfinite(tau):
            raise FloatingPointError
        return float(np.float32(min(max(tau, _SMALLEST_TAU), _LARGEST_TAU)))


def quantile(values: Floats, residual: Floats | None, density: float, key: int) -> float:
    """Return the magnitude that a share `density` of a sample reaches, and at least one value."""
    size = min(len(values), max(len(values) // 32, 1 << 12), 1 << 14)
    sampled = sample(values, residual, size, key)
    least, _ = kth_largest(sampled.view(np.int32), min(max(round(density * size), 1), size))
    return float(np.int32(least).view(np.float32))


def _half_the_mean(values: Floats, residual: Floats | None) -> float:
    """Return half the mean of the nonzero magnitudes: the first tau if most values are zero."""
    wanted = np.abs(values if residual is None else values + residual)
    count = np.count_nonzero(wanted)
    return float(wanted.sum(dtype=np.float64)) / (2 * count) if count else 0.0


def floor_after(picked: Floats, floor: float) -> float:
    """Return the smallest tau of the next time: 1/256 of the largest and 1/4 of the mean picked.

    No entry then accumulates more than about 256 steps: if it holds more than 256 times the largest
    entry of any gradient, tau exceeds what a step adds to it, and it shrinks. The price is that
    other entries wait while one is that much larger. On gaussian gradients the largest is twice
    tau, and neither floor is active. The mean matters where fewer entries than the target density
    are nonzero: any tau above zero would meet that density.
    """
    if not len(picked):
        return floor / 2
    total, largest = _total_and_largest(picked)
    return max(largest / 256, total / len(picked) / 4)


def _write(tau: float, picked: Picked, num_values: int, room: Bytes) -> int:
    count = len(picked.indices)
    words = rice.encode(picked.indices, num_values)
    num_signs = -(-count // 32)
    size = _HEAD_BYTES + 4 * (num_signs + len(words))
    into = room[:size].view(np.uint32)
    into[:1].view(np.float32)[0] = tau
    into[1] = count
    _signs(picked.values.view(np.uint32), into[2 : 2 + num_signs])
    into[2 + num_signs :] = words
    return size


def _read(body: Bytes, num_values: int) -> tuple[np.float32, rice.Indices, rice.Words]:
    if len(body) < _HEAD_BYTES or len(body) % 4:
        raise PayloadError(f"has a section of {len(body)} bytes, which is not tau, count and words")
    words = body.view(np.uint32)
    tau, count = words[:1].view(np.float32)[0], int(words[1])
    num_signs = -(-count // 32)
    if 2 + num_signs > len(words):
        raise PayloadError(f"has a section of {len(body)} bytes, too few for {count} signs")
    if not np.isfinite(tau) or tau <= 0:
        raise PayloadError(f"has a threshold of {tau}")
    indices = rice.decode(words[2 + num_signs :], num_values, count)
    return tau, indices, words[2 : 2 + num_signs]


@compiled
def _total_and_largest(picked: Any) -> tuple[float, float]:
    """Return sum and maximum of the magnitudes, added from first to last."""
    total = largest = 0.0
    for at in range(len(picked)):
        magnitude = np.float64(np.abs(picked[at]))
        total += magnitude
        largest = max(largest, magnitude)
    return total, largest


@compiled
def _signs(bits: Any, words: Any) -> None:
    for place in range(len(words)):
        word = np.uint32(0)
        for lane in range(min(32, len(bits) - 32 * place)):
            sign = np.uint32(bits[32 * place + lane] >> np.uint32(31))
            word = np.uint32(word | np.uint32(sign << np.uint32(lane)))
        words[place] = word


@compiled
def _step(indices: Any, signs: Any, tau: Any, scale: Any, add: Any, out: Any) -> None:
    step = np.float32(tau * scale)
    for at in range(len(indices)):
        down = np.uint32(signs[at >> 5] >> np.uint32(at & 31)) & np.uint32(1)
        value = -step if down else step
        index = indices[at]
        if add:
            out[index] = np.float32(out[index] + value)
        else:
            out[index] = value
