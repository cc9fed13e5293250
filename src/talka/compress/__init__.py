"""Make gradients smaller before they travel. Pure functions of tensors: no ranks, no sockets."""

# ruff: noqa: E402  # the check comes first: its error explains what to install
import warnings

from talka.extras import require

require("torch", by="talka.compress")

from talka.compress.base import Compressor, SectionCompressor, SummableCompressor
from talka.compress.feedback import ErrorFeedback
from talka.compress.layout import Layout, Piece, cut, layout_of
from talka.compress.payload import Payload
from talka.compress.registry import COMPRESSORS, compressor

__all__ = [
    "COMPRESSORS",
    "Compressor",
    "ErrorFeedback",
    "Layout",
    "Payload",
    "Piece",
    "SectionCompressor",
    "SummableCompressor",
    "compressor",
    "cut",
    "layout_of",
]

_FORMER_NAMES = {"Additive": "SummableCompressor", "Sectioned": "SectionCompressor"}


def __getattr__(name: str) -> object:
    """Return a class by its former name, with a warning."""
    if name in _FORMER_NAMES:
        message = f"talka.compress.{name} is now called {_FORMER_NAMES[name]}"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return globals()[_FORMER_NAMES[name]]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
