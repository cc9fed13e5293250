"""Predict the bytes and seconds of an exchange."""

from typing import NamedTuple

from talka.compress import Layout
from talka.exchange.base import Exchange
from talka.exchange.compressed import CompressedExchange
from talka.exchange.topologies.low_rank import LowRank
from talka.network import LOOPBACK, Cost, Network


class Prediction(NamedTuple):
    """Predicted cost of one average of the whole model."""

    sent_bytes: float
    """Bytes that all workers together send."""
    seconds: float | None
    """Seconds on the network alone; None if the network is unknown."""
    reason: str


def predict(exchange: Exchange, layout: Layout, network: Network | None) -> Prediction:
    """Predict one average with an exchange; without a network only its bytes."""
    assumed = Network.equal(LOOPBACK, exchange.num_workers) if network is None else network
    cost = cost_of(exchange, layout, assumed)
    return Prediction(cost.total_bytes, None if network is None else cost.seconds, cost.reason)


def cost_of(exchange: Exchange, layout: Layout, network: Network) -> Cost:
    """Return the cost of one average of a vector with this layout."""
    if isinstance(exchange, LowRank):
        return LowRank.cost(network, layout, exchange.factor_rank)
    assert isinstance(exchange, CompressedExchange)
    worker = exchange.worker  # its expectations follow recent gradients
    payload_bytes = exchange.payload_bytes(worker, layout, exchange.num_workers)
    dense_bytes = 4.0 * sum(piece.num_values for piece in layout)
    return exchange.cost(network, payload_bytes, dense_bytes)
