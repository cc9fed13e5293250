"""The price of a rhythm: bytes and seconds per round and per step, from the price of one average.

    every-step     step = computing + codec + network
    delayed:S      step = max(computing + codec, codec + network), from the first average on
    local-sgd:K    step = (K * computing + codec + network) / K

With a delay, the exchange runs while the next steps compute. It needs the core that computes for its
codec, so of these only the network is free; with a core of its own, `codec_overlaps`, the codec is, too.
A round of LocalSGD sends the change of the model, which has as many values as its gradients, and then
buffers and momentum as float32. The slowest worker with its share of the batch sets the pace.

The additional steps that a rhythm or a lossy compressor needs are not part of the price.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from talka.compress.layout import nameless
from talka.errors import InvalidValueError
from talka.exchange import EXCHANGES, Price
from talka.exchange.registry import codec_of, default_name
from talka.network import Network
from talka.train.rhythms.short_forms import RhythmConfig


@dataclass(frozen=True, slots=True)
class RhythmPrice:
    """Predicted price of a rhythm with one compressor and one exchange."""

    rhythm: RhythmConfig
    spec: str
    exchange: str
    compute_s: float
    """Seconds that the slowest worker computes per step."""
    codec_s: float
    """Seconds of encoding and decoding per round, on the worker with most to do."""
    network_s: float
    """Seconds on the network per round."""
    round_bytes: float
    """Bytes per round that the worker with most to send sends."""
    total_bytes: float
    """Bytes per round that all workers together send."""
    step_s: float
    """Seconds of a step, averaged over a round."""

    @property
    def steps_per_round(self) -> int:
        """Number of steps between two rounds."""
        return self.rhythm.steps if self.rhythm.name == "local-sgd" else 1

    @property
    def step_bytes(self) -> float:
        """Bytes per step that the worker with most to send sends."""
        return self.round_bytes / self.steps_per_round

    @property
    def round_s(self) -> float:
        """Seconds of a round, if no part of it overlaps with computing."""
        return self.codec_s + self.network_s


def rhythm_price(
    rhythm: RhythmConfig,
    price: Price,
    compute_s: float,
    *,
    extras: Price | None = None,
    codec_overlaps: bool = False,
) -> RhythmPrice:
    """Return the price of a rhythm in its steady state.

    Parameters
    ----------
    price
        Price of one average of the gradients, or of the changes of local-sgd.
    compute_s
        Seconds that the slowest worker computes per step; see `pace_s`.
    extras
        Price of the values that local-sgd averages uncompressed in each round; see `extras_price`.
    codec_overlaps
        True if a delayed exchange encodes and decodes on a core that computing does not use.
    """
    codec_s, network_s = price.codec_s, price.network_s
    round_bytes, total_bytes = price.cost.max_sent_bytes, price.sent_bytes
    if rhythm.name == "local-sgd" and extras is not None:
        codec_s, network_s = codec_s + extras.codec_s, network_s + extras.network_s
        round_bytes += extras.cost.max_sent_bytes
        total_bytes += extras.sent_bytes
    round_s = codec_s + network_s
    if rhythm.name == "local-sgd":
        step_s = compute_s + round_s / rhythm.steps
    elif rhythm.name == "delayed" and rhythm.steps:
        step_s = max(compute_s + (0.0 if codec_overlaps else codec_s), round_s)
    else:
        step_s = compute_s + round_s
    return RhythmPrice(
        rhythm,
        price.spec,
        price.exchange,
        compute_s,
        codec_s,
        network_s,
        round_bytes,
        total_bytes,
        step_s,
    )


def extras_price(num_values: int, network: Network) -> Price | None:
    """Return the price of the buffers and the momentum that local-sgd averages; None without any."""
    if num_values == 0:
        return None
    codec = codec_of("none")
    name = default_name(codec, network.num_workers)
    return EXCHANGES[name].price(codec, nameless(num_values), network)


def pace_s(compute_s: Sequence[float], *, proportional: bool = False) -> float:
    """Return the seconds of computing per step of workers with unequal speed.

    With equal shares of the batch, all wait for the slowest one; with shares in proportion to their
    speeds, all take equally long.

    compute_s
        Seconds that each worker computes for an equal share of the batch.

    >>> (
    ...     round(pace_s([1.0, 1.0, 1.0, 5.0]), 2),
    ...     round(pace_s([1.0, 1.0, 1.0, 5.0], proportional=True), 2),
    ... )
    (5.0, 1.25)
    """
    if not compute_s or not all(0 < seconds < float("inf") for seconds in compute_s):
        raise InvalidValueError("compute_s", tuple(compute_s), "finite and above 0 for each worker")
    if not proportional:
        return max(compute_s)
    return len(compute_s) / sum(1 / seconds for seconds in compute_s)
