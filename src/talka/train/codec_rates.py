"""Measure how fast this machine encodes and decodes: seconds per value on one core."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import torch
from torch import Tensor

from talka.compress import Summable, compressor, layout_of
from talka.events import Stream
from talka.exchange.power_sgd import powersgd_rank
from talka.exchange.pricing.price import FREE, CodecRates
from talka.exchange.topologies.low_rank import times
from talka.profile import Trial, this_machine
from talka.profile.trial import median_seconds

MAX_MEASURED_VALUES = 4_000_000
"""Length of the largest vector measured. Longer ones take as long per value."""
_CACHE_VALUES = 12_000_000  # more bytes than the caches of common processors


def codec_trial(spec: str) -> Trial:
    """Return the trial of a compressor, on gaussian values."""
    return Trial(
        f"codec/{spec}",
        f"encoding and decoding with {spec}, per value",
        CodecRates._fields,
        lambda: measure_codec(spec, MAX_MEASURED_VALUES)._asdict(),
        packages=("torch", "numba"),
    )


def profiled_rates(spec: str, events: Stream | None = None) -> CodecRates:
    """Return the rates of a compressor from the profile of this machine."""
    return CodecRates(**this_machine().figures(codec_trial(spec), events))


def kept_rates(spec: str) -> CodecRates:
    """Return the rates of a compressor if the profile has them, otherwise zeros."""
    figures = this_machine().kept(codec_trial(spec))
    return FREE if figures is None else CodecRates(**figures)


def measure_codec(spec: str, num_values: int, sample: Tensor | None = None) -> CodecRates:
    """Encode and decode a vector of `num_values`, at most four million, and return the rates.

    The values are `sample`, or Gaussian by default. As in training, they are in fresh memory and in
    no cache: the forward and backward passes come between two exchanges. Many small parameters cost
    more per value than one large one; this is not modelled.
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
    """Return the shape of the most nearly square matrix holding at most `num_values` values.

    >>> square_shape(2_900_000), square_shape(7)
    ((1702, 1703), (2, 3))
    """
    rows = max(int(num_values**0.5), 1)
    return rows, num_values // rows


class _Fresh:
    """A vector that is copied to fresh memory before each call, while caches are filled with others."""

    def __init__(self, values: Tensor) -> None:
        self._first, self.values = values, values
        self._others = torch.ones(_CACHE_VALUES)

    def renew(self) -> None:
        self.values = self._first.clone()
        self._others.sum()


def _measure_compressor(values: Tensor, spec: str) -> CodecRates:
    size, layout = values.numel(), layout_of({"gradient": (values.numel(),)})
    chosen, converting = compressor(spec), compressor(spec)
    buffer = torch.empty(chosen.max_bytes(size, layout), dtype=torch.uint8)
    given = _Fresh(values)
    encode_s = median_seconds(
        lambda: chosen.encode(given.values, layout, out=buffer), before=given.renew
    )
    payload, total = chosen.encode(values, layout), _Fresh(torch.zeros(size))
    decode_s = median_seconds(
        lambda: chosen.decode(payload, total.values, layout, add=True), before=total.renew
    )
    convert_s = 0.0
    if converting.summable and spec != "none":
        adder = cast(Summable, converting)
        convert_s = median_seconds(
            lambda: adder.from_wire(adder.to_wire(given.values, layout), given.values, layout),
            before=given.renew,
        )
    return CodecRates(encode_s / size, decode_s / size, convert_s / size)


def _measure_low_rank(values: Tensor, factor_rank: int) -> CodecRates:
    """Time the products that `talka.exchange.topologies.low_rank` computes for one square matrix."""
    rows, columns = square_shape(values.numel())
    size = rows * columns
    given = _Fresh(values[:size])
    residual = torch.zeros(size)
    width = min(factor_rank, rows, columns)
    start = torch.randn(columns, width, generator=torch.Generator().manual_seed(1))
    p, q = torch.zeros(rows, width), torch.zeros(columns, width)

    def encode() -> None:
        residual.add_(given.values)
        matrix = residual.view(rows, columns)
        p.copy_(torch.linalg.qr(times(matrix, start)).Q)
        q.copy_(times(matrix.T, p))

    def decode() -> None:
        average = given.values.view(rows, columns)
        torch.matmul(p, q.T, out=average)
        residual.view(rows, columns).sub_(average)

    encode_s = median_seconds(encode, before=given.renew)
    decode_s = median_seconds(decode, before=given.renew)
    return CodecRates(encode_s / size, decode_s / size)


@contextmanager
def _one_core() -> Iterator[None]:
    """Restrict torch to one thread for the duration of the `with` block."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
