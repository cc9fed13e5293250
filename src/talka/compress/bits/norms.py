"""Norms of buckets: the largest magnitude, or the Euclidean norm."""

from typing import Any

import numpy as np

from talka.compiled import compiled
from talka.compress.bits.dense import are_finite, larger, rest_of, wanted
from talka.compress.bits.lanes import LANES, floats_of, spread, store, sum_of, to_doubles

SUMMED = 4096  # values summed in lanes before the lanes are added up
LARGEST_NORM = np.float32(2.0**128 * (1 - 2.0**-20))  # so that no level becomes infinite
SMALLEST_NORM = np.float32(2.0**-100)  # smaller norms count as zero: fractions would underflow


@compiled
def norm_of(values: Any, residual: Any, start: Any, stop: Any, by_largest: Any) -> Any:
    """Return the norm of `(values + residual)[start:stop]`; negative if it is not finite."""
    if by_largest:
        norm = _largest(values, residual, start, stop)
    else:
        norm = _euclidean(values, residual, start, stop)
    if not norm < np.inf:
        return np.float32(-1)
    return min(np.float32(norm), LARGEST_NORM) if norm >= SMALLEST_NORM else np.float32(0)


@compiled
def _largest(values: Any, residual: Any, start: Any, stop: Any) -> Any:
    full = start + (stop - start) // LANES * LANES
    worst = spread(np.int32(0))
    for at in range(start, full, LANES):
        worst = larger(worst, wanted(values, residual, at))
    if full < stop:
        rest_values = rest_of(values, full, stop, LANES)
        rest_residual = rest_of(residual, full, stop, LANES)
        worst = larger(worst, wanted(rest_values, rest_residual, 0))
    if not are_finite(worst):
        return np.inf
    magnitudes = np.empty(LANES, np.float32)
    store(magnitudes, 0, floats_of(worst))
    return np.float64(magnitudes.max())


@compiled
def _euclidean(values: Any, residual: Any, start: Any, stop: Any) -> Any:
    total = 0.0
    full = start + (stop - start) // LANES * LANES
    for first in range(start, full, SUMMED):
        squares = spread(0.0)
        for at in range(first, min(first + SUMMED, full), LANES):
            row = to_doubles(wanted(values, residual, at))
            squares = squares + row * row
        total += sum_of(squares)
    for at in range(full, stop):
        value = values[at]
        if residual is not None:
            value = np.float32(value + residual[at])
        total += np.float64(value) * np.float64(value)
    return np.sqrt(total)
