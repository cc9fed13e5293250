"""Exchanges: average a vector over all workers, compressed or not.

Every worker gets bit-identical results.
"""

# ruff: noqa: E402  # the check comes first: its error explains what to install
from talka.extras import require

require("torch", by="talka.exchange")

from talka.exchange.base import Exchange
from talka.exchange.compressed import CompressedExchange
from talka.exchange.links.probe import ProbeResult, probe
from talka.exchange.meter import Meter
from talka.exchange.pricing.choose import choices, choose
from talka.exchange.pricing.predict import predict
from talka.exchange.pricing.price import CodecRates, Price
from talka.exchange.registry import EXCHANGES, open_exchange

__all__ = [
    "EXCHANGES",
    "CodecRates",
    "CompressedExchange",
    "Exchange",
    "Meter",
    "Price",
    "ProbeResult",
    "choices",
    "choose",
    "open_exchange",
    "predict",
    "probe",
]
