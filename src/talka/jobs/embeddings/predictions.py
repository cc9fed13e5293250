"""The estimate as predicted costs, part by part."""

import math

from talka.events import Predicted
from talka.jobs.embeddings.config import EmbedConfig
from talka.jobs.embeddings.estimate import Estimate
from talka.network import LOOPBACK, Network
from talka.train.models.glove.slices import BATCH_PAIRS, predicted_bytes
from talka.units import format_count

SAMPLE_PAIRS_OF_RANKS = 100_000
_ROUND_S = 0.0004  # one all-reduce of 8 kB between processes of this machine, with its wake-ups


def predictions(config: EmbedConfig, expected: Estimate | None) -> list[Predicted]:
    """What each phase will take; without an estimate, that it cannot be said."""
    if expected is None:
        reason = "the corpus cannot be sampled: standard input, or no word often enough in it"
        return [Predicted(part, None, None, reason) for part in ("cooccurrence", "train")]
    tokens, pairs = format_count(expected.num_tokens), format_count(expected.num_pairs)
    counted = f"{tokens} words, {format_count(expected.num_words)} different ones kept"
    return [
        Predicted("vocabulary", None, expected.scan_s, f"{counted}, {config.threads} threads"),
        Predicted(
            "cooccurrence", None, expected.count_s, f"{pairs} pairs, {config.threads} threads"
        ),
        _training(config, expected, pairs),
    ]


def _training(config: EmbedConfig, expected: Estimate, pairs: str) -> Predicted:
    total = config.epochs * expected.num_pairs
    rate = expected.train_pairs_per_s
    if config.parallel == "threads":
        reason = f"{config.epochs} epochs of {pairs} pairs at {format_count(rate)} a second"
        return Predicted("train", None, total / rate, reason)
    workers = config.workers
    network = Network.equal(LOOPBACK, workers)
    products = round(total) + config.epochs * SAMPLE_PAIRS_OF_RANKS
    num_rounds = math.ceil(products / BATCH_PAIRS)
    sent = predicted_bytes(products, num_rounds, network)
    rounds_s = num_rounds * _ROUND_S if workers > 1 else 0.0
    reason = f"{config.epochs} epochs of {pairs} products of 4 bytes, summed over {workers} workers"
    return Predicted("train", sent, total / rate + rounds_s, reason)
