"""Make gradients smaller before they travel. Pure functions of tensors: no ranks, no sockets."""

# ruff: noqa: E402  # the check comes first: its error explains what to install
from talka.extras import require

require("torch", by="talka.compress")

from talka.compress.base import Additive, Compressor, Sectioned
from talka.compress.feedback import ErrorFeedback
from talka.compress.layout import Layout, Piece, cut, layout_of
from talka.compress.payload import Payload
from talka.compress.registry import COMPRESSORS, compressor

__all__ = [
    "COMPRESSORS",
    "Additive",
    "Compressor",
    "ErrorFeedback",
    "Layout",
    "Payload",
    "Piece",
    "Sectioned",
    "compressor",
    "cut",
    "layout_of",
]
