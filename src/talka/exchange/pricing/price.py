"""The price of one average: seconds on the network, seconds of encoding and decoding, and bytes."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from talka.network import Cost, Network


class CodecRates(NamedTuple):
    """Seconds per value on one core."""

    encode_s: float
    """Seconds per value to encode, including the update of the residual if there is one."""
    decode_s: float
    """Seconds per value to decode and add to the output."""
    convert_s: float = 0.0
    """Seconds per value to convert to the summable wire format and back; 0 if there is none, and for
    `none`, as plain DDP sums gradients in place."""


FREE = CodecRates(0.0, 0.0)
"""Rates with which only the network has a price."""


@dataclass(frozen=True, slots=True)
class Price:
    """Predicted price of one average of a vector with one compressor and one exchange."""

    spec: str
    exchange: str
    cost: Cost
    """Bytes by worker and seconds on the network."""
    codec_s: float
    """Seconds of encoding and decoding, on the worker with most to do."""
    payload_bytes: float
    """Expected bytes of all payloads that one worker encodes of the vector."""
    resparsifies: bool
    """True if sparse averages are sparsified again without need: never chosen, but can be named."""
    cost_on: Callable[[Network], Cost] = field(repr=False, compare=False)
    """Function that returns the cost of the same payloads on another network."""

    @property
    def network_s(self) -> float:
        """Seconds on the network."""
        return self.cost.seconds

    @property
    def seconds(self) -> float:
        """Seconds of the average, if no part of it overlaps with another."""
        return self.codec_s + self.cost.seconds

    @property
    def sent_bytes(self) -> float:
        """Bytes that all workers together send."""
        return self.cost.total_bytes

    @property
    def reason(self) -> str:
        """Formula behind the cost, with its numbers."""
        return self.cost.reason

    def on(self, network: Network) -> "Price":
        """Return the price of the same payloads on other links between as many workers."""
        return replace(self, cost=self.cost_on(network))
