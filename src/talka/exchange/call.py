"""One call of `Exchange.average`: its vector, its messages and its buffers.

Exchanges send and receive through a `Call`, which counts bytes, times encoding and decoding, gives
each message its own tag, and keeps buffers alive until the call ends.
"""

from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor

from talka.compress import Compressor, Layout, Payload
from talka.errors import PayloadError
from talka.exchange.buffers import Buffers
from talka.exchange.conveyor import Awaited
from talka.exchange.message import Message
from talka.exchange.meter import Meter


class Channel(Protocol):
    """The members of an exchange that a call uses."""

    rank: int
    num_workers: int
    global_ranks: list[int]
    group: dist.ProcessGroup
    meter: Meter
    buffers: Buffers


class Call:
    """One vector that is being averaged."""

    def __init__(self, channel: Channel, values: Tensor, layout: Layout, first_tag: int) -> None:
        self.values, self.layout = values, layout
        self._channel, self._first_tag = channel, first_tag
        self.rank, self.num_workers = channel.rank, channel.num_workers
        self._meter = channel.meter
        self._taken: list[Tensor] = []

    def buffer(self, num_bytes: int) -> Tensor:
        """Return at least this many bytes, which belong to this call until it ends."""
        taken = self._channel.buffers.take(num_bytes)
        self._taken.append(taken)
        return taken

    def floats(self, num_values: int) -> Tensor:
        """Return a float32 buffer, which belongs to this call until it ends."""
        return self.buffer(4 * num_values)[: 4 * num_values].view(torch.float32)

    def release(self) -> None:
        """Give all buffers back to the pool."""
        self._channel.buffers.give_back(self._taken)
        self._taken = []

    def encode(self, compressor: Compressor, values: Tensor, layout: Layout) -> Payload:
        """Encode pieces of a vector into a buffer of this call."""
        with self._meter.timed("encode_s"):
            limit = compressor.max_bytes(values.numel(), layout)
            payload = compressor.encode(values, layout, out=self.buffer(limit))
        if payload.num_bytes > limit:
            raise PayloadError(
                f"of {compressor.spec!r} has {payload.num_bytes} bytes, more than its max_bytes, "
                f"{limit}"
            )
        return payload

    def decode(
        self,
        compressor: Compressor,
        data: Tensor,
        layout: Layout,
        *,
        add: bool = False,
        scale: float = 1.0,
    ) -> int:
        """Decode a payload into the vector, and return its size in bytes.

        `data` is the buffer in which it arrived, which may be longer.
        """
        with self._meter.timed("decode_s"):
            payload = Payload(data[: Payload(data).header.num_bytes])
            compressor.decode(payload, self.values, layout, add=add, scale=scale)
        return payload.num_bytes

    def send(self, data: Tensor, to: int, *, phase: int = 0) -> Awaited:
        """Start sending a tensor to a rank; messages between two ranks differ by `phase`."""
        self._meter.sent_bytes += data.numel() * data.element_size()
        other, group = self._channel.global_ranks[to], self._channel.group
        tag = self._first_tag + phase
        return Message(lambda: dist.isend(data, other, group, tag), [other])

    def receive(self, into: Tensor, source: int, *, phase: int = 0) -> Awaited:
        """Start receiving at most as many bytes as the buffer has."""
        other, group = self._channel.global_ranks[source], self._channel.group
        tag = self._first_tag + phase
        return Message(lambda: dist.irecv(into, other, group, tag), [other])

    def received(self, num_bytes: int) -> None:
        """Count bytes that arrived."""
        self._meter.received_bytes += num_bytes
