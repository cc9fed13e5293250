"""Reuse of the byte buffers that payloads are encoded into and received in."""

import torch
from torch import Tensor

_GRAIN_BYTES = 1 << 12


class Buffers:
    """A pool of byte tensors by size; used by the exchange thread alone."""

    def __init__(self) -> None:
        self._free: dict[int, list[Tensor]] = {}

    def take(self, num_bytes: int) -> Tensor:
        """Return a tensor of at least this many bytes, with undefined content."""
        size = max(_GRAIN_BYTES, -(-num_bytes // _GRAIN_BYTES) * _GRAIN_BYTES)
        free = self._free.get(size)
        return free.pop() if free else torch.empty(size, dtype=torch.uint8)

    def give_back(self, buffers: list[Tensor]) -> None:
        """Make buffers available to later calls of `take`."""
        for buffer in buffers:
            self._free.setdefault(buffer.numel(), []).append(buffer)
