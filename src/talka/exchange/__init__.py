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
from talka.exchange.pricing.choose import Choice, choices, choose
from talka.exchange.pricing.predict import Prediction, predict
from talka.exchange.registry import EXCHANGES, open_exchange

__all__ = [
    "EXCHANGES",
    "Choice",
    "CompressedExchange",
    "Exchange",
    "Meter",
    "Prediction",
    "ProbeResult",
    "choices",
    "choose",
    "open_exchange",
    "predict",
    "probe",
]
