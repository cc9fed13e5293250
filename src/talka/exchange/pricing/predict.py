"""What an exchange will send and how long it will take, before it does."""

from typing import NamedTuple

from talka.compress import Layout
from talka.exchange.base import CompressedExchange, Exchange
from talka.exchange.topologies.low_rank import LowRank
from talka.network import LOOPBACK, Cost, Network


class Prediction(NamedTuple):
    sent_bytes: float
    """Of all workers together, in one average of the whole model."""
    seconds: float | None
    """On the network alone; None if nothing is known about the network."""
    reason: str


def predict(exchange: Exchange, layout: Layout, network: Network | None) -> Prediction:
    assumed = Network.equal(LOOPBACK, exchange.num_workers) if network is None else network
    cost = cost_of(exchange, layout, assumed)
    return Prediction(cost.total_bytes, None if network is None else cost.seconds, cost.reason)


def cost_of(exchange: Exchange, layout: Layout, network: Network) -> Cost:
    if isinstance(exchange, LowRank):
        return LowRank.cost(network, layout, exchange.factor_rank)
    assert isinstance(exchange, CompressedExchange)
    worker = exchange.sides()["worker"]  # it knows what gradients were like lately
    payload_bytes = exchange.payload_bytes(worker, layout, exchange.num_workers)
    dense_bytes = 4.0 * sum(piece.num_values for piece in layout)
    return exchange.cost(network, payload_bytes, dense_bytes)
