"""The prices of all exchanges that can carry a compressor, and the cheapest of them."""

from torch import Tensor

from talka.compress import Layout
from talka.compress.layout import nameless
from talka.errors import SpecError
from talka.exchange.power_sgd import Codec, PowerSgd
from talka.exchange.pricing.price import FREE, CodecRates, Price
from talka.exchange.registry import EXCHANGES, codec_of
from talka.network import Network
from talka.renaming import renamed

STEPS_WITH_SAMPLE = 10
"""Number of encodings of a sample after which a compressor has adapted to its values."""


@renamed(spec="compressor")
def choices(
    compressor: str | Codec,
    num_values: int,
    network: Network,
    *,
    layout: Layout | None = None,
    sample: Tensor | None = None,
    rates: CodecRates = FREE,
) -> list[Price]:
    """Return the prices of all exchanges that can carry a compressor, cheapest first.

    Exchanges that would sparsify averages of a few workers again come last.

    The size of some payloads depends on the values. With `sample`, a vector like those to come,
    sizes are those of its payloads; otherwise those of gaussian values.
    """
    layout = nameless(num_values) if layout is None else layout
    codec = codec_of(compressor)
    if sample is not None and not isinstance(codec, PowerSgd):
        codec = codec.for_worker(0)  # a copy, since encoding a sample changes its state
        for _ in range(STEPS_WITH_SAMPLE):
            codec.encode(sample, layout)
    prices = []
    for kind in EXCHANGES.values():
        try:
            prices.append(kind.price(codec, layout, network, rates))
        except SpecError:
            continue
    return sorted(prices, key=_preference)


@renamed(spec="compressor")
def choose(
    compressor: str | Codec,
    num_values: int,
    network: Network,
    *,
    layout: Layout | None = None,
    rates: CodecRates = FREE,
) -> Price:
    """Return the price of the cheapest exchange that does not sparsify twice without need.

    Of equal ones, it is the one that sends fewer bytes, then the one that comes first in EXCHANGES.
    """
    return choices(compressor, num_values, network, layout=layout, rates=rates)[0]


def _preference(price: Price) -> tuple[bool, float, float]:
    seconds = float(f"{price.seconds:.9g}")  # the last bits depend on the order of additions
    return price.resparsifies, seconds, price.sent_bytes
