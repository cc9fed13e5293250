"""No compression: values are sent as float32. The reference for all other compressors."""

import numpy as np
import torch
from torch import Tensor

from talka.compress.base import Draw
from talka.compress.bits.dense import copy, take
from talka.compress.dense import Dense
from talka.compress.layout import Piece
from talka.compress.payload import Bytes, Floats
from talka.errors import PayloadError


class NoCompression(Dense):
    """Sends values as float32."""

    name, code = "none", 0
    contracts = unbiased = safe_with_adam = detects_nonfinite = True
    wire_type = torch.float32

    def encode_section(
        self, values: Floats, residual: Floats | None, piece: Piece, draw: Draw, room: Bytes
    ) -> int:
        _send(values, residual, room[: 4 * len(values)].view(np.float32))
        return 4 * len(values)

    def decode_section(self, body: Bytes, out: Floats, *, add: bool, scale: float) -> None:
        if len(body) != 4 * len(out):
            raise PayloadError(f"has {len(body)} bytes for {len(out)} values of 4 bytes")
        take(body.view(np.float32), out, add, np.float32(scale))

    def section_max_bytes(self, num_values: int) -> int:
        return 4 * num_values

    def fill(self, values: Floats, residual: Floats | None, wire: Tensor) -> None:
        _send(values, residual, wire.numpy())


def _send(values: Floats, residual: Floats | None, sent: Floats) -> None:
    if not copy(values, residual, sent):
        raise FloatingPointError
    if residual is not None:
        residual[:] = 0
