"""How fast this machine encodes and decodes, measured in a moment: seconds a value, on one core."""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, cast

import torch
from torch import Tensor

from talka.compress import Summable, compressor, layout_of
from talka.exchange.registry import powersgd_rank
from talka.exchange.topologies.low_rank import times

MAX_MEASURED_VALUES = 1_000_000
"""Larger vectors are as fast a value: this one already is larger than a core's caches."""
REPEATS = 5


class CodecRates(NamedTuple):
    """Seconds a value."""

    encode_s: float
    """With the residual, if there is one."""
    decode_s: float
    """And add."""
    convert_s: float = 0.0
    """Into the form that adds up, and back; 0 for what has none. 0 for `none`: plain DDP sums
    gradients where they are."""


def measure_codec(spec: str, num_values: int, sample: Tensor | None = None) -> CodecRates:
    """Really encode and decode a vector of so many values, at most a million: gaussian, or `sample`.

    The first round of each is not counted: it compiles kernels and takes memory. The median of a
    few counts after that. Sections of many small parameters cost more a value than one large one;
    that is left out.
    """
    size = max(min(num_values, MAX_MEASURED_VALUES), 1)
    if sample is None:
        values = torch.randn(size, generator=torch.Generator().manual_seed(0))
    else:
        values = sample[:size]
    factor_rank = powersgd_rank(spec)
    with _one_core():
        if factor_rank is not None:
            return _measure_low_rank(values, factor_rank)
        return _measure_compressor(values, spec)


def square_shape(num_values: int) -> tuple[int, int]:
    """Of the matrix nearest to a square that so many values fill, up to a rest shorter than a row.

    >>> square_shape(2_900_000), square_shape(7)
    ((1702, 1703), (2, 3))
    """
    rows = max(int(num_values**0.5), 1)
    return rows, num_values // rows


def _measure_compressor(values: Tensor, spec: str) -> CodecRates:
    size, layout = values.numel(), layout_of({"gradient": (values.numel(),)})
    chosen, converting = compressor(spec), compressor(spec)
    room = torch.empty(chosen.max_bytes(size, layout), dtype=torch.uint8)
    encode_s = _median_s(lambda: chosen.encode(values, layout, out=room))
    payload, total = chosen.encode(values, layout), torch.zeros(size)
    decode_s = _median_s(lambda: chosen.decode(payload, total, layout, add=True))
    convert_s = 0.0
    if converting.summable and spec != "none":
        adder = cast(Summable, converting)
        convert_s = _median_s(lambda: adder.from_wire(adder.to_wire(values, layout), total, layout))
    return CodecRates(encode_s / size, decode_s / size, convert_s / size)


def _measure_low_rank(values: Tensor, factor_rank: int) -> CodecRates:
    """The same products as `talka.exchange.topologies.low_rank` makes of one square matrix."""
    rows, columns = square_shape(values.numel())
    gradient = values[: rows * columns].view(rows, columns)
    residual, average = torch.zeros(rows, columns), torch.zeros(rows, columns)
    width = min(factor_rank, rows, columns)
    start = torch.randn(columns, width, generator=torch.Generator().manual_seed(1))
    p, q = torch.zeros(rows, width), torch.zeros(columns, width)

    def encode() -> None:
        torch.add(residual, gradient, out=average)
        p.copy_(torch.linalg.qr(times(average, start)).Q)
        q.copy_(times(average.T, p))

    def decode() -> None:
        torch.matmul(p, q.T, out=average)
        residual.sub_(average)

    size = rows * columns
    return CodecRates(_median_s(encode) / size, _median_s(decode) / size)


def _median_s(work: Callable[[], object]) -> float:
    work()
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


@contextmanager
def _one_core() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
