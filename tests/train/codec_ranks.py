"""Rank program of the test of codec formulas: average once, and count encoded and decoded values."""

from unittest import mock

import torch

from talka.compress import layout_of
from talka.exchange import open_exchange
from talka.exchange.base import Call


def coded_values(worker, exchange_names, size):
    """Values that this rank encoded and decoded, over the size of the vector, by exchange."""
    return {name: _coded_values(name, size) for name in exchange_names}


def _coded_values(exchange_name, size):
    coded = {"encode": 0, "decode": 0}
    encode, decode = Call.encode, Call.decode

    def counted_encode(call, compressor, values, layout):
        coded["encode"] += _num_values(layout)
        return encode(call, compressor, values, layout)

    def counted_decode(call, compressor, data, layout, **options):
        coded["decode"] += _num_values(layout)
        return decode(call, compressor, data, layout, **options)

    exchange = open_exchange("onebit+ef", exchange_name)
    with mock.patch.multiple(Call, encode=counted_encode, decode=counted_decode):
        exchange.average(torch.randn(size), layout_of({"weight": (size,)})).wait()
    exchange.close()
    return coded["encode"] / size, coded["decode"] / size


def _num_values(layout):
    return sum(piece.num_values for piece in layout)
