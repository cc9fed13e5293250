"""Memory that is used again in every step: fresh pages would cost more than what is copied into them."""

import torch
from torch import Tensor

_GRAIN = 1 << 12


class Buffers:
    """Byte tensors by size; used by one thread alone."""

    def __init__(self) -> None:
        self._free: dict[int, list[Tensor]] = {}

    def take(self, num_bytes: int) -> Tensor:
        """At least so many bytes, with anything in them."""
        size = max(_GRAIN, -(-num_bytes // _GRAIN) * _GRAIN)
        free = self._free.get(size)
        return free.pop() if free else torch.empty(size, dtype=torch.uint8)

    def give(self, buffers: list[Tensor]) -> None:
        for buffer in buffers:
            self._free.setdefault(buffer.numel(), []).append(buffer)
