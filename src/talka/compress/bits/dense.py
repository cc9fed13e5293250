"""Kernels over uncompressed values: add the residual, copy, scale. One pass over memory each."""

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from talka.compiled import compiled
from talka.compress.bits.lanes import LANES, bits_of, load, signed, spread, store, where

_NO_SIGN, _INFINITE = np.uint32(0x7FFFFFFF), np.uint32(0x7F800000)


@compiled
def wanted(values: Any, residual: Any, at: Any) -> Any:
    """Return sixteen values plus their residual: what should be sent."""
    if residual is None:
        return load(values, at)
    return load(values, at) + load(residual, at)


def rest_of(array: Any, start: Any, stop: Any, size: Any) -> Any:
    """Return `array[start:stop]` padded with zeros to `size`; None for None. For kernels only."""
    raise NotImplementedError


def _rest_of(array: Any, start: Any, stop: Any, size: Any) -> Any:
    def of_none(array: Any, start: Any, stop: Any, size: Any) -> Any:
        return None

    def rest_of(array: Any, start: Any, stop: Any, size: Any) -> Any:
        rest = np.zeros(size, array.dtype)
        rest[: stop - start] = array[start:stop]
        return rest

    return of_none if isinstance(array, types.NoneType) else rest_of


overload(rest_of)(_rest_of)


@compiled
def larger(worst: Any, floats: Any) -> Any:
    """Return the larger magnitude of each lane, as signed bits: NaN is larger than infinity."""
    magnitude = signed(bits_of(floats) & _NO_SIGN)
    return where(magnitude > worst, magnitude, worst)


@compiled
def are_finite(worst: Any) -> Any:
    """Return True if all magnitudes that were passed to `larger` were finite."""
    rows = np.empty(LANES, np.int32)
    store(rows, 0, worst)
    return rows.max() < np.int32(_INFINITE)


@compiled
def copy(values: Any, residual: Any, sent: Any) -> Any:
    """Write `values + residual` to `sent`; return True if all of it is finite."""
    full = len(values) // LANES * LANES
    worst = spread(np.int32(0))
    for at in range(0, full, LANES):
        row = wanted(values, residual, at)
        store(sent, at, row)
        worst = larger(worst, row)
    rest_values = rest_of(values, full, len(values), LANES)
    rest_residual = rest_of(residual, full, len(values), LANES)
    row = wanted(rest_values, rest_residual, 0)
    worst = larger(worst, row)
    rest = np.empty(LANES, np.float32)
    store(rest, 0, row)
    sent[full:] = rest[: len(values) - full]
    return are_finite(worst)


@compiled
def take(sent: Any, out: Any, add: Any, scale: Any) -> None:
    """Set `out`, or with `add` increase it, by `scale * sent`."""
    full = len(out) // LANES * LANES
    if add:
        for at in range(0, full, LANES):
            store(out, at, load(out, at) + load(sent, at) * scale)
        for at in range(full, len(out)):
            out[at] += scale * sent[at]
    else:
        for at in range(0, full, LANES):
            store(out, at, load(sent, at) * scale)
        for at in range(full, len(out)):
            out[at] = scale * sent[at]
