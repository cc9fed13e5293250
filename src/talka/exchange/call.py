"""One call of `Exchange.average`: its vector, its messages and its buffers.

Exchanges send and receive through a `Call`, which counts bytes, times encoding and decoding, gives
each message its own tag, and keeps buffers alive until the call ends. It is also the port through
which the patterns of `talka.channels.collectives` communicate.
"""

import copy
from typing import Protocol

from torch import Tensor

from talka.channels import Group
from talka.channels.coding import array_of
from talka.channels.collectives.port import Awaited
from talka.channels.operations import Buffer, ReceiveOperation, bytes_of
from talka.compress import Compressor, Layout, Payload
from talka.errors import PayloadError
from talka.exchange.buffers import Buffers
from talka.exchange.meter import Meter


class Channel(Protocol):
    """The members of an exchange that a call uses."""

    rank: int
    num_workers: int
    channels: Group
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

    def after(self, num_phases: int) -> "Call":
        """Return a port of the same call whose messages follow those of earlier patterns."""
        later = copy.copy(self)
        later._first_tag += num_phases
        return later

    def buffer(self, num_bytes: int) -> Tensor:
        """Return at least this many bytes, which belong to this call until it ends."""
        taken = self._channel.buffers.take(num_bytes)
        self._taken.append(taken)
        return taken

    def scratch(self, like: Tensor) -> Tensor:
        """Return a buffer of the same type and length, which belongs to this call until it ends."""
        return self.buffer(like.nbytes)[: like.nbytes].view(like.dtype)

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
    ) -> None:
        """Decode a payload into the vector; `data` is the buffer in which it arrived."""
        with self._meter.timed("decode_s"):
            payload = Payload(data[: Payload(data).header.num_bytes])
            compressor.decode(payload, self.values, layout, add=add, scale=scale)

    def combine(self, into: Tensor, part: Tensor) -> None:
        """Add a part of a sum."""
        with self._meter.timed("decode_s"):
            into += part

    def send(self, array: Tensor, to: int, *, phase: int = 0) -> Awaited:
        """Start to send a tensor to a rank; messages between two ranks differ by `phase`."""
        self._meter.sent_bytes += array.nbytes
        group = self._channel.channels
        return group.mailbox.post_send(
            group.global_ranks[to],
            _memory(array),
            tag=self._first_tag + phase,
            context=group.context,
            needs=frozenset(group.global_ranks),
        )

    def receive(self, into: Tensor, source: int, *, phase: int = 0) -> Awaited:
        """Start to receive at most as many bytes as the buffer has."""
        group = self._channel.channels
        receive = group.mailbox.post_receive(
            group.global_ranks[source],
            tag=self._first_tag + phase,
            context=group.context,
            into=_memory(into),
            needs=frozenset(group.global_ranks),
        )
        return _CountedReceive(receive, self._meter)


class _CountedReceive:
    """A receive whose bytes are counted when it is done."""

    def __init__(self, receive: ReceiveOperation, meter: Meter) -> None:
        self._receive, self._meter = receive, meter

    def wait(self) -> None:
        self._receive.wait()
        self._meter.received_bytes += len(self._receive.data)


def _memory(tensor: Tensor) -> Buffer:
    return bytes_of(array_of(tensor))
