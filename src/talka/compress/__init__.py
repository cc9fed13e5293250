"""Compressors: encode gradients in fewer bytes. They compute on tensors and do not communicate."""

# ruff: noqa: E402  # the check comes first: its error explains what to install
import warnings

from talka.extras import require

require("torch", by="talka.compress")

from talka.compress.base import Draw, SectionCompressor, SummableCompressor
from talka.compress.feedback import ErrorFeedback
from talka.compress.layout import Layout, Piece, cut, layout_of
from talka.compress.payload import Payload, PayloadWriter
from talka.compress.protocol import Compressor, Summable
from talka.compress.registry import COMPRESSORS, compressor, register
from talka.compress.state_key import State, StateKey

__all__ = [
    "COMPRESSORS",
    "Compressor",
    "Draw",
    "ErrorFeedback",
    "Layout",
    "Payload",
    "PayloadWriter",
    "Piece",
    "SectionCompressor",
    "State",
    "StateKey",
    "Summable",
    "SummableCompressor",
    "compressor",
    "cut",
    "layout_of",
    "register",
]

_FORMER_NAMES = {"Additive": "SummableCompressor", "Sectioned": "SectionCompressor"}


def __getattr__(name: str) -> object:
    """Return a class by its former name, with a warning."""
    if name in _FORMER_NAMES:
        message = f"talka.compress.{name} is now called {_FORMER_NAMES[name]}"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return globals()[_FORMER_NAMES[name]]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
