"""Predicted costs of the phases of an embeddings job, from the estimate."""

import math

from talka.events import Predicted
from talka.jobs.embeddings.config import EmbedConfig
from talka.jobs.embeddings.estimate import Estimate
from talka.network import LOOPBACK, Network
from talka.train.models.glove.slices import BATCH_PAIRS, predicted_bytes
from talka.units import format_count

SAMPLE_PAIRS_OF_RANKS = 100_000
_START_WORKERS_S = 1.5  # to load torch, fork and connect processes, and load kernels


def predictions(config: EmbedConfig, expected: Estimate | None) -> list[Predicted]:
    """Predict each phase; without an estimate, return rows that only give the reason."""
    if expected is None:
        reason = "the corpus cannot be sampled: it is standard input or has no frequent words"
        return [Predicted(cost_id, None, None, reason) for cost_id in ("cooccurrence", "train")]
    tokens, pairs = format_count(expected.num_tokens), format_count(expected.num_pairs)
    counted = f"{tokens} words of text, {format_count(expected.num_words)} in the vocabulary"
    threads = f"{config.threads} threads"
    rate = expected.train_pairs_per_s
    return [
        Predicted("vocabulary", None, expected.scan_s, f"{counted}, {threads}"),
        Predicted("cooccurrence", None, expected.count_s, f"{pairs} pairs, {threads}"),
        *training_costs(config, expected.num_pairs, pairs_per_s=rate),
    ]


def training_costs(
    config: EmbedConfig, num_pairs: float, *, pairs_per_s: float, cost_id: str = "train"
) -> list[Predicted]:
    """Predict training on this many pairs, at the speed measured for the chosen parallelism."""
    total = config.epochs * num_pairs
    pairs = f"{config.epochs} epochs of {format_count(num_pairs)}"
    if config.parallel == "threads":
        reason = f"{pairs} pairs at {format_count(pairs_per_s)} per second"
        return [Predicted(cost_id, None, total / pairs_per_s, reason)]
    workers = config.workers
    products = round(total) + config.epochs * min(SAMPLE_PAIRS_OF_RANKS, round(num_pairs))
    num_rounds = math.ceil(products / BATCH_PAIRS)
    sent = predicted_bytes(products, num_rounds, Network.equal(LOOPBACK, workers))
    seconds = products / pairs_per_s
    reason = f"{pairs} products of 4 bytes, summed over {workers} workers in {num_rounds} rounds"
    start = f"loading torch, starting and connecting {workers} workers"
    return [
        Predicted(f"{cost_id}/start", None, _START_WORKERS_S, start),
        Predicted(cost_id, sent, seconds, reason),
    ]
