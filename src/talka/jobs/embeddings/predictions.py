"""Predicted costs of the phases of an embeddings job, from the estimate."""

import math

from talka.jobs.embeddings.config import EmbedConfig
from talka.jobs.embeddings.estimate import Estimate
from talka.plans import Part
from talka.profile import this_machine
from talka.train.models.glove.slices import BATCH_PAIRS, predicted_bytes
from talka.train.models.glove.trials import SLICES
from talka.units import format_count

SAMPLE_PAIRS_OF_RANKS = 100_000


def predicted_parts(config: EmbedConfig, expected: Estimate | None) -> list[Part]:
    """Predict each phase; without an estimate, return parts that only give the reason."""
    if expected is None:
        reason = "the corpus cannot be sampled: it is standard input or has no frequent words"
        return [
            Part(cost_id=f"embed/{phase}", reason=reason) for phase in ("cooccurrence", "train")
        ]
    tokens, pairs = format_count(expected.num_tokens), format_count(expected.num_pairs)
    counted = f"{tokens} words of text, {format_count(expected.num_words)} in the vocabulary"
    threads = f"{config.threads} threads"
    rate, memory_bytes = expected.train_pairs_per_s, expected.memory_bytes
    return [
        Part(cost_id="embed/vocabulary", seconds=expected.scan_s, reason=f"{counted}, {threads}"),
        Part(
            cost_id="embed/cooccurrence",
            seconds=expected.count_s,
            memory_bytes=memory_bytes,
            reason=f"{pairs} pairs, {threads}",
        ),
        *training_parts(config, expected.num_pairs, pairs_per_s=rate, trials=(expected.trial,)),
    ]


def training_parts(
    config: EmbedConfig,
    num_pairs: float,
    *,
    pairs_per_s: float,
    trials: tuple[str, ...],
    cost_id: str = "embed/train",
) -> list[Part]:
    """Predict training on this many pairs, at the speed that the trials measured."""
    total = config.epochs * num_pairs
    pairs = f"{config.epochs} epochs of {format_count(num_pairs)}"
    if config.parallel == "threads":
        reason = f"{pairs} pairs at {format_count(pairs_per_s)} per second"
        seconds = total / pairs_per_s
        return [Part(cost_id=cost_id, seconds=seconds, reason=reason, trials=trials)]
    workers = config.workers
    products = round(total) + config.epochs * min(SAMPLE_PAIRS_OF_RANKS, round(num_pairs))
    num_rounds = math.ceil(products / BATCH_PAIRS)
    return [
        Part(
            cost_id=f"{cost_id}/start",
            seconds=this_machine().figures(SLICES)["start_s"],
            reason=f"starting and connecting {workers} workers",
            trials=(SLICES.name,),
        ),
        Part(
            cost_id=cost_id,
            seconds=products / pairs_per_s,
            sent_bytes=predicted_bytes(products, num_rounds, workers),
            reason=f"{pairs} products of 4 bytes, summed over {workers} workers in {num_rounds} "
            "rounds",
            trials=trials,
        ),
    ]
