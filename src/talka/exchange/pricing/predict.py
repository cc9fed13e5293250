"""Predict the price of an open exchange."""

from talka.compress import Layout
from talka.exchange.base import Exchange
from talka.exchange.pricing.price import FREE, CodecRates, Price
from talka.network import LOOPBACK, Network


def predict(
    exchange: Exchange, layout: Layout, network: Network | None, rates: CodecRates = FREE
) -> Price:
    """Return the price of one average; without a network, its bytes are right and its time is not.

    Sizes of payloads that depend on the values follow recent gradients.
    """
    assumed = Network.equal(LOOPBACK, exchange.num_workers) if network is None else network
    return exchange.price(exchange.codec, layout, assumed, rates)
